# SPDX-License-Identifier: GPL-2.0
"""The picture: throughput over CPUs, a line a scheduler and kernel."""
import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 800, 460
LEFT, RIGHT, TOP, BOTTOM = 64, 210, 62, 74
LABEL_GAP = 15

# Drawn on a ground of its own, so it reads on any page; the second set is for
# readers whose system is dark.  Plain rules: not every viewer knows var().
LIGHT = {"ground": "#ffffff", "ink": "#1f2328", "soft": "#59636e",
         "grid": "#e3e6ea", "none": "#59636e", "kyber": "#8250df",
         "deadline": "#0969da", "bfq": "#bc4c00"}
DARK = {"ground": "#0d1117", "ink": "#e6edf3", "soft": "#9198a1",
        "grid": "#2a313c", "none": "#9198a1", "kyber": "#c297ff",
        "deadline": "#58a6ff", "bfq": "#f0883e"}
SHAPES = """
text { font: 12px system-ui, 'DejaVu Sans', sans-serif; }
.title { font-size: 15px; font-weight: 600; }
.foot { font-size: 10px; }
.grid { stroke-width: 1; }
.line { fill: none; stroke-width: 2.5; stroke-linejoin: round; }
.base { stroke-dasharray: 5 4; stroke-width: 1.8; }
"""
COLOURS = {"none": "none", "kyber": "kyber", "mq-deadline": "deadline",
           "bfq": "bfq"}


def _rules(colours):
    rules = [f".ground {{ fill: {colours['ground']}; }}",
             f"text {{ fill: {colours['ink']}; }}",
             f".soft {{ fill: {colours['soft']}; }}",
             f".grid {{ stroke: {colours['grid']}; }}"]
    for name in COLOURS.values():
        rules += [f".line.{name} {{ stroke: {colours[name]}; }}",
                  f".mark.{name} {{ fill: {colours[name]}; }}"]
    return "\n".join(rules)


def _style():
    return f"<style>{SHAPES}{_rules(LIGHT)}\n" \
        f"@media (prefers-color-scheme: dark) {{\n{_rules(DARK)}\n}}</style>"


def _ticks(low, high):
    """1, 2 and 5 of every power of ten within the range; more if it is short."""
    steps = (1, 2, 5) if high / low > 5 else (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
    found = [m * 10 ** e for e in range(int(math.floor(math.log10(low))),
                                        int(math.ceil(math.log10(high))) + 1)
             for m in steps]
    return [t for t in found if low <= t <= high]


def _spread(wanted, low, high):
    """Heights for labels near those wanted, LABEL_GAP apart, inside."""
    places = sorted(wanted, key=lambda item: item[0])
    heights = []
    for y, _ in places:
        heights.append(max(y, heights[-1] + LABEL_GAP if heights else low))
    over = heights[-1] - high if heights else 0
    if over > 0:
        heights[-1] -= over
        for i in range(len(heights) - 2, -1, -1):
            heights[i] = min(heights[i], heights[i + 1] - LABEL_GAP)
    return [(h, label) for h, (_, label) in zip(heights, places)]


class Chart:
    def __init__(self, series):
        self.series = series
        points = [p for line in series.values() for p in line]
        self.cpus = sorted({x for x, _ in points})
        self.low = min(y for _, y in points) / 1.25
        self.high = max(y for _, y in points) * 1.25

    def x(self, cpus):
        span = math.log(self.cpus[-1] / self.cpus[0]) or 1
        part = math.log(cpus / self.cpus[0]) / span
        return LEFT + part * (WIDTH - LEFT - RIGHT)

    def y(self, rate):
        part = math.log(rate / self.low) / math.log(self.high / self.low)
        return HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)

    def grid(self):
        for tick in _ticks(self.low, self.high):
            y = self.y(tick)
            yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" ' \
                f'y1="{y:.1f}" y2="{y:.1f}"/>'
            yield f'<text class="soft" x="{LEFT - 8}" y="{y + 4:.1f}" ' \
                f'text-anchor="end">{tick:g}</text>'
        for cpus in self.cpus:
            yield f'<text class="soft" x="{self.x(cpus):.1f}" ' \
                f'y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{cpus}</text>'

    def lines(self):
        for (sched, kernel), line in self.series.items():
            kind = COLOURS.get(sched, "none")
            dashes = " base" if kernel == "base" else ""
            path = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}"
                            for x, y in sorted(line))
            yield f'<polyline class="line {kind}{dashes}" points="{path}"/>'
            for x, y in line:
                yield f'<circle class="mark {kind}" cx="{self.x(x):.1f}" ' \
                    f'cy="{self.y(y):.1f}" r="3"/>'

    def labels(self):
        ends = [(self.y(max(line)[1]), (name, max(line)[1]))
                for name, line in self.series.items() if line]
        for y, ((sched, kernel), rate) in _spread(ends, TOP,
                                                  HEIGHT - BOTTOM):
            words = f"{sched} {kernel}" if kernel else sched
            yield f'<text class="mark {COLOURS.get(sched, "none")}" ' \
                f'x="{WIDTH - RIGHT + 12}" y="{y + 4:.1f}">' \
                f'{escape(words)} {rate:.0f}</text>'


def draw(series, title, subtitle, foot, axis="CPUs"):
    """series: {(scheduler, kernel): [(x, y), ...]}; returns the SVG."""
    chart = Chart({name: line for name, line in series.items() if line})
    frame = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" '
        f'height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<title>{escape(title)}</title>", _style(),
        f'<rect class="ground" width="{WIDTH}" height="{HEIGHT}" rx="6"/>',
        f'<text class="title" x="16" y="26">{escape(title)}</text>',
        f'<text class="soft" x="16" y="45">{escape(subtitle)}</text>',
        f'<text class="soft" x="{(LEFT + WIDTH - RIGHT) / 2}" '
        f'y="{HEIGHT - BOTTOM + 38}" text-anchor="middle">{escape(axis)}</text>',
        f'<text class="soft foot" x="16" y="{HEIGHT - 14}">{escape(foot)}</text>']
    body = [*chart.grid(), *chart.lines(), *chart.labels()]
    return "\n".join(frame + body + ["</svg>"]) + "\n"


def scaling(records, workload="scaletest"):
    """The picture of the newest scaletest, or None if there is none."""
    mine = [r for r in records if r["what"] == "manycore"
            and r["workload"] == workload
            and r["values"].get("ios_per_mtick")]
    devices = [r["device"] for r in mine]
    device = max(set(devices), key=devices.count) if devices else None
    mine = [r for r in mine if r["device"] == device]
    if len({r["cpus"] for r in mine}) < 2:
        return None
    series = {}
    for rec in sorted(mine, key=lambda r: (r["kernel"], r["sched"])):
        line = series.setdefault((rec["sched"], rec["kernel"]), [])
        line.append((rec["cpus"], rec["values"]["ios_per_mtick"]))
    return draw(series, f"{workload} on {device}: I/Os per million ticks",
                "emulated CPUs, logarithmic; "
                "dashed: 7.3.4 (base), solid: with the series", _origin(mine))


def _origin(records):
    newest = max(records, key=lambda r: r["date"])
    named = sorted({r["series"] for r in records if r["kernel"] == "patched"})
    return "; ".join([f"Linux {newest['release']}, base {newest['base']}"]
                     + [f"series {name}" for name in named]
                     + [newest["date"], newest["command"].split(" --")[0]])


def nvme_study(records, device, value, unit, scale=1):
    """One figure of the NVMe study over the depth, or None: its jobs are those
    with the most load.  It is shown in units of scale."""
    mine = [(*map(int, r["workload"].split(" x ")), r) for r in records
            if r["what"] == "nvmestudy" and r["device"] == device
            and r["values"].get(value)]
    mine = [cell for cell in mine if cell[0] == max(c[0] for c in mine)]
    if len({depth for _, depth, _ in mine}) < 2:
        return None
    series = {}
    for _, depth, rec in sorted(mine, key=lambda c: (
            c[2]["kernel"], c[2]["sched"], c[1])):
        line = series.setdefault((rec["sched"], rec["kernel"]), [])
        line.append((depth, rec["values"][value] / scale))
    clock = "counted instructions" if mine[0][2].get("clock") == "counted" \
        else "the wall clock"
    return draw(series, f"4 KiB random writes by {mine[0][0]} jobs: {unit}",
                f"{device}, by {clock}, logarithmic; "
                "dashed: 7.3.4 (base), solid: with the series",
                _origin([rec for _, _, rec in mine]), axis="depth of a job")


STUDIED = {"QEMU NVMe": "nvme-study", "nvme-loop": "nvme-loop-study"}


def pictures(records):
    """{file name: picture} of all that the records allow to draw."""
    found = {"scaling.svg": scaling(records)}
    for device, name in STUDIED.items():
        found[f"{name}-iops.svg"] = nvme_study(records, device, "iops", "IOPS")
        found[f"{name}-p99.svg"] = nvme_study(
            records, device, "lat_p99", "99th percentile of the latency, ms", 1000)
    return {name: text for name, text in found.items() if text}
