# SPDX-License-Identifier: GPL-2.0
"""Versions, the machine's apt configuration, and which QEMU is new enough."""
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from blkscale import apt, base, qemu

DEB822 = """\
Types: deb
# an older copy
URIs: http://archive.example.org/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc

Types: deb
URIs: http://other.example.org/x
Suites: stable
Components: main
Enabled: no
"""
ONE_LINE = """\
# deb http://old.example.org/debian bookworm main
deb [arch=amd64 signed-by=/usr/Share/key.gpg] https://vendor.example.org/apt tool main
deb cdrom:[Debian]/ bookworm main
deb-src http://mirror.example.org/debian bookworm main
deb http://mirror.example.org/debian bookworm main non-free # local
"""


class Versions(unittest.TestCase):
    def test_makefile(self):
        text = "# x\nVERSION = 7\nPATCHLEVEL = 3\nSUBLEVEL = 4\nEXTRAVERSION =\nNAME = Baby\n"
        self.assertEqual(base.makefile_version(text), "7.3.4")
        self.assertEqual(base.makefile_version(text.replace("SION =\nN", "SION = -rc2\nN")),
                         "7.3.4-rc2")
        self.assertEqual(base.makefile_version("all:\n"), "")

    def test_point_releases_fit(self):
        for version in ("7.3", "7.3.4", "7.3.0-rc1", "7.3.12-1~bpo13+1"):
            self.assertTrue(base.fits(version, "7.3"), version)
        for version in ("7.30.1", "7.4.0-rc1", "6.7.3", "17.3.1"):
            self.assertFalse(base.fits(version, "7.3"), version)

    def test_wrong_trees_end_in_one_line(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaises(SystemExit):
                base.version_of(folder)
        with self.assertRaises(SystemExit):
            base.check_version("7.5.1", "there")

    def test_no_space_is_said_before(self):
        with mock.patch.object(base.paths, "BUILD", Path(tempfile.gettempdir())):
            base.need_space(1)
            with self.assertRaises(SystemExit):
                base.need_space(10 ** 18)


class Sources(unittest.TestCase):
    def test_deb822(self):
        found = apt.deb822(DEB822)
        self.assertEqual(len(found), 1)
        self.assertEqual(found[0]["suites"], "bookworm bookworm-updates")
        self.assertIn("\n abc", found[0]["signed-by"])

    def test_one_line(self):
        found = apt.one_line(ONE_LINE)
        self.assertEqual(found[0]["signed-by"], "/usr/Share/key.gpg")
        self.assertEqual(found[-1]["components"], "main non-free")
        own = apt.own_entry(found, "bookworm")
        self.assertEqual(own["uris"], "http://mirror.example.org/debian")
        self.assertEqual(own["types"], "deb")

    def test_no_archive_of_the_distribution(self):
        self.assertIsNone(apt.own_entry(apt.one_line(ONE_LINE), "trixie"))

    def test_whole_configuration(self):
        with tempfile.TemporaryDirectory() as folder:
            etc = Path(folder)
            (etc / "sources.list.d").mkdir()
            (etc / "sources.list.d/debian.sources").write_text(DEB822)
            (etc / "sources.list.d/x.list.save").write_text(ONE_LINE)
            own = apt.own_entry(apt.sources(etc), "bookworm")
        text = apt.entry_text(own, "trixie-backports", "/key.gpg")
        self.assertIn("Suites: trixie-backports\nComponents: main\nSigned-By: \n -----BEGIN", text)

    def test_entry_gets_the_keyring_and_never_trust(self):
        entry = {"uris": "http://a", "trusted": "yes", "check-valid-until": "no"}
        self.assertEqual(apt.entry_text(entry, "s", "/key.gpg"),
                         "Types: deb\nURIs: http://a\nSuites: s\nComponents: main\n"
                         "Signed-By: /key.gpg\nCheck-Valid-Until: no\n")

    def test_os_release(self):
        with tempfile.NamedTemporaryFile("w+") as file:
            file.write('ID=linuxmint\nID_LIKE="ubuntu debian"\nVERSION_CODENAME=x\n'
                       "UBUNTU_CODENAME=noble\n")
            file.flush()
            self.assertEqual(apt.os_release(file.name), ("ubuntu", "noble"))

    def test_trouble_is_one_line(self):
        self.assertEqual(apt.trouble("Hit:1\nE: No network\nE: more\n"), "No network")
        self.assertEqual(apt.trouble(""), "apt said nothing")


class Qemu(unittest.TestCase):
    def fake(self, folder, version):
        path = Path(folder) / qemu.PROGRAM
        path.write_text(f"#!/bin/sh\necho 'QEMU emulator version {version}'\n")
        path.chmod(0o755)
        return str(path)

    def test_numbers_compare(self):
        self.assertLess(qemu.numbers("7.2+dfsg-7+deb12u18"), qemu.numbers("9.1"))
        self.assertLess(qemu.numbers("9.1"), qemu.numbers("10.0.2"))

    def test_old_and_new(self):
        with tempfile.TemporaryDirectory() as folder:
            new = self.fake(folder, "10.0.2 (Debian)")
            with mock.patch.dict(os.environ, {"QEMU": new}):
                self.assertEqual(qemu.command(), ([new], {}))
                self.fake(folder, "7.2.0")
                with self.assertRaises(SystemExit):
                    qemu.command()

    def test_one_that_does_not_run(self):
        self.assertIsNone(qemu.version(["/bin/false"], {}))
        self.assertIsNone(qemu.version(["/no/such/file"], {}))
