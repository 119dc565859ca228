#!/usr/bin/env python3
"""rn.py TREE BASE BRANCH NEWBRANCH: rewrite names and comments of all commits"""
import re, subprocess, sys, textwrap, os
sys.path.insert(0,'/tmp/h/rn')
from comments import PAIRS, RENAMES
T, BASE, BR, NEW = sys.argv[1:5]
RENAMES=[(a,'blk_mq_sched_trylock' if a=='blk_mq_sched_lock' else b) for a,b in RENAMES]
def git(*a, inp=None, env=None, text=True):
    e=dict(os.environ); e.update(env or {})
    return subprocess.run(['git','-C',T,*a],input=inp,capture_output=True,text=text,check=True,env=e).stdout
files=git('diff','--name-only',BASE,BR).split()
RN=[(re.compile(r'\b%s\b'%a),b) for a,b in RENAMES]
EXTRA={
 'block/blk-mq-sched.c':[(r'\bchoice\b','batch'),(r'ctx->merges','ctx->merge_hint'),(r'\bmerges\b(?= = READ_ONCE)','hint'),(r'else if \(merges\)','else if (hint)'),(r'merges - 1','hint - 1')],
 'block/blk-mq.c':[(r'\blent\b','borrowed')],
 'block/blk-mq.h':[(r'(\bu8\s+)merges;',r'\1merge_hint;')],
 'block/mq-deadline.c':[(r'\bcheck_driver\b','direct_in_driver')],
}
def norm(s): return ' '.join(s.split())
used=set()
def vis(s): return len(s.expandtabs(8))
def fix_par(words):
    t=norm(words)
    for i,(a,b) in enumerate(PAIRS):
        if a!=b and a in t:
            t=t.replace(a,b); used.add(i)
    return t
def is_doc_start(l):
    return re.match(r'@\w+:|Return:|Context:|- |\w+ - |ELV_\w+:|``|Returns ',l)
def wrap(text, indent, first, hang=''):
    # lines: indent + ' * ' + ...
    pre=indent+' * '
    hpre=indent+' *'+hang if hang.startswith('\t') else pre+hang
    ls=textwrap.wrap(text,80-vis(pre),subsequent_indent='x'*(vis(hpre)-vis(pre)),break_long_words=False,break_on_hyphens=False)
    return [pre+l if i==0 else hpre+l[vis(hpre)-vis(pre):] for i,l in enumerate(ls)]
BASETXT=['']
def long(w): return any(vis(l)>80 for l in w.split('\n')) and w not in BASETXT[0]
def fix_comment(m):
    whole=m.group(0); indent=m.group('ind')
    body=m.group('body')
    if not long(whole) and norm(re.sub(r'\n[ \t]*\*',' ',body))==norm(fix_par(re.sub(r'\n[ \t]*\*',' ',body))):
        return whole
    doc=body.startswith('*')
    if '\n' not in body:
        t=fix_par(body)
        one=f'{indent}/* {t} */'
        if vis(one)<=80: return one
        return '\n'.join([indent+'/*']+wrap(t,indent,True)+[indent+' */'])
    lines=body.split('\n')
    head=lines[0]; rest=lines[1:-1]
    out=[indent+'/*'+head.rstrip()]
    pars=[];cur=[]
    for l in rest:
        c=re.sub(r'^[ \t]*\* ?(?!\t)','',l); c=re.sub(r'^[ \t]*\*(?=\t)','',c)
        if c.strip()=='' or is_doc_start(c):
            if cur: pars.append(cur)
            cur=[]
            if c.strip()=='': pars.append(None)
            else: cur=[(l,c)]
        else: cur.append((l,c))
    if cur: pars.append(cur)
    for p in pars:
        if p is None: out.append(indent+' *'); continue
        old=norm(' '.join(c for _,c in p)); new=fix_par(old)
        if new==old and not (long(whole) and any(vis(l)>80 for l,_ in p)): out+= [l for l,_ in p]
        else:
            hang=re.match(r'[ \t]*',p[1][1]).group(0) if len(p)>1 else ''
            out+=wrap(new,indent,True,hang)
    # multi-line that fits in one
    inner=[o for o in out[1:]]
    if len(inner)==1 and not doc:
        one=indent+'/* '+re.sub(r'^[ \t]*\* ','',inner[0])+' */'
        if vis(one)<=80: return one
    return '\n'.join(out+[indent+' */'])
CRE=re.compile(r'(?m)^(?P<ind>[ \t]*)/\*(?P<body>(?:(?!\*/).)*?)\*/(?=[ \t]*$)',re.S)
def trailing(m):
    pre,body=m.group(1),m.group(2); t=fix_par(body)
    return pre+'/* '+t+' */' if t!=norm(body) else m.group(0)
TRE=re.compile(r'(?m)^([^\n/]*\S[^\n/]*)/\* ([^\n]*?) \*/$')
def transform(path,s):
    if path.endswith(('.c','.h')):
        try: BASETXT[0]=git('show',f'{BASE}:{path}')
        except Exception: BASETXT[0]=''
        if path.startswith('tools/'): BASETXT[0]=s
        s=CRE.sub(fix_comment,s)
        s=TRE.sub(trailing,s)
        for a,b in EXTRA.get(path,[]): s=re.sub(a,b,s)
    for r,b in RN: s=r.sub(b,s)
    if path.endswith(('.c','.h')): s=realign(s)
    for a,b in POST: s=s.replace(a,b)
    return s
NAMES=[b for a,b in RENAMES]
def realign(s):
    L=s.split('\n'); i=0
    while i<len(L):
        l=L[i]
        n=next((n for n in NAMES if n+'(' in l),None)
        if n and not l.lstrip().startswith('*'):
            j=l.index(n+'(')+len(n)
            depth=0; 
            for ch in l[j:]: depth+= ch=='('; depth-= ch==')'
            col=vis(l[:j+1]); k=i+1
            while depth>0 and k<len(L):
                t=L[k].lstrip()
                if depth==1: L[k]='\t'*(col//8)+' '*(col%8)+t
                for ch in t: depth+= ch=='('; depth-= ch==')'
                k+=1
        i+=1
    return '\n'.join(L)
POST=[
 ('unsigned int blk_mq_sched_direct_depth(struct blk_mq_hw_ctx *hctx, struct bio *bio)\n','unsigned int blk_mq_sched_direct_depth(struct blk_mq_hw_ctx *hctx,\n\t\t\t\t       struct bio *bio)\n'),
 ('\t\t.hctx\t= hctx,\n\t\t.borrowed\t=','\t\t.hctx\t\t= hctx,\n\t\t.borrowed\t='),
]
cache={}
FN="""/* Whether there is one dispatcher at a time, see blk_mq_do_dispatch_sched(). */
static bool blk_mq_sched_one_dispatcher(struct blk_mq_hw_ctx *hctx)
{
	return hctx->queue->elevator->type->core_lock &&
	       !(hctx->flags & BLK_MQ_F_BLOCKING) &&
	       !IS_ENABLED(CONFIG_PREEMPT_RT);
}

"""
INL="""/* Whether there is one dispatcher at a time, see blk_mq_do_dispatch_sched(). */
static inline bool blk_mq_sched_one_dispatcher(struct blk_mq_hw_ctx *hctx)
{
	const struct elevator_queue *e = hctx->queue->elevator;

	return e && e->type->core_lock && !(hctx->flags & BLK_MQ_F_BLOCKING) &&
	       !IS_ENABLED(CONFIG_PREEMPT_RT);
}

"""
HAS=[False]
def special(path,s):
    if path=='block/blk-mq-sched.c':
        if 'blk_mq_sched_one_dispatcher' in s: assert FN in s
        s=s.replace(FN,'')
    if path=='block/blk-mq-sched.h' and HAS[0]:
        a='static inline void blk_mq_sched_restart(struct'
        assert s.count(a)==1
        s=s.replace(a,INL+a)
    if path=='block/blk-mq.c' and 'BLK_MQ_S_WAIT_TAG' in s:
        old="""		/* With shared tags hctx->dispatch_wait says when there is one. */
		if (prep == PREP_DISPATCH_NO_TAG && !no_tag)
"""
        assert old in s
        s=s.replace(old,"""		/*
		 * With shared tags, hctx->dispatch_wait is woken when a tag is
		 * free. If several CPUs may dispatch, none waits for another.
		 */
		if (prep == PREP_DISPATCH_NO_TAG && !no_tag &&
		    blk_mq_sched_one_dispatcher(hctx))
""")
    return s
def blob(path,oid):
    k=(path,oid,HAS[0] if path.endswith('sched.h') else 0)
    if k not in cache:
        data=git('cat-file','blob',oid)
        new=transform(path,special(path,data))
        cache[k]=oid if new==data else git('hash-object','-w','--stdin',inp=new).strip()
    return cache[k]
parent=git('rev-parse',BASE).strip()
base_tree={}
env={'GIT_INDEX_FILE':'/tmp/h/rn/index'}
for c in git('rev-list','--reverse',f'{BASE}..{BR}').split():
    git('read-tree',c,env=env)
    ls=git('ls-tree',c,*files).splitlines()
    HAS[0]='blk_mq_sched_one_dispatcher' in git('show',c+':block/blk-mq-sched.c')
    upd=[]
    for l in ls:
        meta,path=l.split('\t'); mode,_,oid=meta.split()
        n=blob(path,oid)
        if n!=oid: upd.append(f'{mode} {n}\t{path}')
    if upd: git('update-index','--index-info',inp='\n'.join(upd)+'\n',env=env)
    tree=git('write-tree',env=env).strip()
    msg=git('log','-1','--format=%B',c).rstrip('\n')+'\n'
    for r,b in RN: msg=r.sub(b,msg)
    an,ae,ad,cd=git('log','-1','--format=%an%x00%ae%x00%aI%x00%cI',c).strip().split('\0')
    parent=git('commit-tree',tree,'-p',parent,inp=msg,env={'GIT_AUTHOR_NAME':an,'GIT_AUTHOR_EMAIL':ae,'GIT_AUTHOR_DATE':ad,'GIT_COMMITTER_NAME':an,'GIT_COMMITTER_EMAIL':ae,'GIT_COMMITTER_DATE':cd}).strip()
git('branch','-f',NEW,parent)
print(parent)
for i,(a,b) in enumerate(PAIRS):
    if i not in used and a!=b: print('unused:',a[:90])
