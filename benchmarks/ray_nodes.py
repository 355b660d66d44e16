"""Run two nodes of a Ray cluster on this machine: print the cluster's address, and replace a node for each input line.

To replace a node, its raylet is ended by SIGKILL, like a machine that fails, and a new node is started. The nodes end
when the input ends. The dashboard is off, and everything listens on 127.0.0.1.
"""

import os
import sys
from typing import Any

from glassformer.system.machine import LOOPBACK

__all__ = ["SETTINGS", "main"]

SETTINGS = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Environment variables of the nodes and of commands on them; the second variable keeps Ray on the loopback address."""


def main() -> None:
    """Start the cluster, and replace its second node for each line of the input."""
    os.environ |= SETTINGS
    from ray.cluster_utils import Cluster

    node: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False}
    node["node_ip_address"] = LOOPBACK
    cluster = Cluster(initialize_head=True, head_node_args=node)
    second = cluster.add_node(**node)
    print(cluster.address, flush=True)
    for _ in sys.stdin:
        cluster.remove_node(second, allow_graceful=False)
        second = cluster.add_node(**node)
        print("replaced", flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main()
