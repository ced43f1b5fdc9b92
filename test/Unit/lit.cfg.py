"""lit configuration of the unit tests: the GoogleTest programs of unittests/."""

import os

import lit.formats

config.name = "attnfuse-unit"
config.suffixes = []
config.test_exec_root = os.path.join(config.attnfuse_obj_root, "unittests")
config.test_source_root = config.test_exec_root
config.test_format = lit.formats.GoogleTest(".", "Tests")
