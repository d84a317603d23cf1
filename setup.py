"""What pyproject.toml cannot say: a wheel holds `stdlib/` in the package, where osprey_py/modules/paths.py looks first."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithLibrary(build_py):
    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            target = Path(self.build_lib) / "osprey_py" / "stdlib"
            self.mkpath(str(target))
            for file in sorted(Path("stdlib").glob("*.osp")):
                self.copy_file(str(file), str(target / file.name))


setup(cmdclass={"build_py": BuildWithLibrary})
