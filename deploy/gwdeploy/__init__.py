"""Graphwire on a cluster: the modules of deploy/launch.py, copy_files.py and cluster.py.

With the modules in parentheses: ip_config.txt (ip_config) and the command line (options) -> an agent on each host
(reach, agent) -> servers and trainers (job), with their environment (environment) and command (command).
"""
