"""Graphwire on a cluster: what deploy/launch.py, copy_files.py and cluster.py are made of.

ip_config.txt (ip_config) and the command line (options) -> an agent on each host (reach, agent) -> servers and
trainers (job), whose environment and command are in environment and command.
"""
