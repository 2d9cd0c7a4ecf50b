"""The build backend of pyproject.toml: scikit-build-core, after a check of the system.

pip imports this module before it builds anything. On other systems than Linux it therefore ends with one line, and not
with the output of a failed build.
"""

import sys

if sys.platform != "linux":
    sys.exit(f"graphwire runs on Linux only, and this system is {sys.platform}: use a Linux host, a container or WSL 2")

from scikit_build_core.build import *  # noqa: F403
