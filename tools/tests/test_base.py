# SPDX-License-Identifier: GPL-2.0
"""Versions, the machine's apt configuration, and which QEMU is new enough."""
import os
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from blkscale.prepare import apt, base, qemu
from helpers import error_of

URIS = """\
'cdrom://Debian/dists/bookworm/main/binary-amd64/Packages.xz' x 0
'https://vendor.example.org/apt/dists/tool/main/binary-amd64/Packages.xz' x 0
'https://vendor.example.org/linux/dists/bookworm/stable/binary-amd64/Packages.xz' x 0
'http://mirror.example.org/debian/dists/bookworm-updates/main/binary-all/Packages.xz' x 0
'http://mirror.example.org/debian/dists/bookworm/main/binary-amd64/Packages.xz' x 0
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
    def test_own_archive(self):
        uri = "http://mirror.example.org/debian"
        self.assertEqual(apt.own_uri(URIS, "bookworm"), uri)
        self.assertIsNone(apt.own_uri(URIS, "trixie"))
        self.assertEqual(apt.own_uri(URIS.replace("/bookworm/", "/stable/"), "bookworm"), uri)

    def test_suites_for_security_have_an_archive_of_their_own(self):
        self.assertEqual(apt.by_kind("debian", ["a-security", "b", "c-security"]),
                         {"-security": ["a-security", "c-security"], "": ["b"]})
        self.assertEqual(apt.by_kind("ubuntu", ["a-security"]), {"": ["a-security"]})
        secure = "http://mirror.example.org/security"
        said = URIS + f"'{secure}/dists/bookworm-security/main/binary-all/Packages.xz' x 0\n"
        self.assertEqual(apt.own_uri(said, "bookworm", "-security"), secure)
        self.assertEqual(apt.own_uri(said, "bookworm"), "http://mirror.example.org/debian")
        self.assertIsNone(apt.own_uri(URIS, "bookworm", "-security"))

    def test_sources_of_several_suites(self):
        said = URIS + "'http://s/x/dists/bookworm-security/main/binary-all/Packages.xz' x 0\n"
        done = subprocess.CompletedProcess([], 0, stdout=said)
        with tempfile.TemporaryDirectory() as folder, \
                mock.patch.object(apt, "HOME", Path(folder)), \
                mock.patch.object(apt, "machine", return_value=("debian", "bookworm")), \
                mock.patch.object(apt.shutil, "which", return_value="apt-get"), \
                mock.patch.object(apt, "call", return_value=done):
            apt.Archive("x", ["bookworm-security", "trixie-security", "trixie-backports"])
            text = Path(folder, "x.sources").read_text()
        self.assertEqual([line for line in text.splitlines() if line[:4] in ("URIs", "Suit")],
                         ["URIs: http://s/x", "Suites: bookworm-security trixie-security",
                          "URIs: http://mirror.example.org/debian", "Suites: trixie-backports"])

    def ends(self, *said):
        """The line of an Archive that ends the program, if apt says this."""
        done = [subprocess.CompletedProcess([], code, stdout=text) for code, text in said]
        with tempfile.TemporaryDirectory() as folder, \
                mock.patch.object(apt, "HOME", Path(folder)), \
                mock.patch.object(apt, "machine", return_value=("debian", "bookworm")), \
                mock.patch.object(apt.shutil, "which", return_value="apt-get"), \
                mock.patch.object(apt, "call", side_effect=done):
            return error_of(lambda: apt.Archive("x", ["a", "b"]).get(Path(folder, "d"), "p"))[0]

    def test_no_archive_and_no_network_end_in_one_line(self):
        self.assertRegex(self.ends((0, "")), "no entry for debian bookworm main; .*KSRC=")
        self.assertRegex(self.ends((0, URIS), (100, "E: Failed to fetch p\n")),
                         "cannot download p: Failed to fetch p; ")
        self.assertRegex(self.ends((0, URIS), (0, "all done\n")), "cannot download p: all done")

    def test_machine(self):
        with mock.patch.object(apt.platform, "freedesktop_os_release", return_value={
                "ID": "linuxmint", "ID_LIKE": "ubuntu debian", "VERSION_CODENAME": "x",
                "UBUNTU_CODENAME": "noble"}):
            self.assertEqual(apt.machine(), ("ubuntu", "noble"))

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
