# SPDX-License-Identifier: Apache-2.0
"""Graphs that a program builds node by node: what their entries answer and do on the simulated GPU, and that we change nothing."""
import re

from harness import expect_equal


def play(world, scene):
    """The lines of a scene of graphs.c: the calls with a code other than 0, and what else it says."""
    plain = world.run([world.program("graphs"), scene], with_us=False)
    ours = world.run([world.program("graphs"), scene])
    expect_equal(f"{scene}: status and stderr", (plain.status, plain.err), (0, ""))
    expect_equal(f"{scene} with us", (ours.status, ours.out, ours.err), (0, plain.out, ""))
    return plain.out.splitlines()


def without_success(lines):
    return [line for line in lines if not re.match(r"cu.*: 0$", line)]


def case_a_graph_runs_the_nodes_it_is_built_of_and_those_of_its_child(world):
    expect_equal("build", without_success(play(world, "build")),
                 ["roots of an empty graph: 0", "type of fill: 0, 2", "type of empty: 0, 5", "type of kernel: 0, 0", "type of copy: 0, 1",
                  "nodes of the child: 1", "roots of the child: 1", "memory: 2 2"])


def case_an_executable_graph_takes_new_parameters_and_the_nodes_of_another(world):
    expect_equal("change", without_success(play(world, "change")),
                 ["memory: 3 5", "memory: 4 6", "memory: 0 6", "result: 0", "memory: 3 5",
                  "cuGraphExecUpdate_v2(exec, later, &info): 910", "result: 2"])


def case_a_child_graph_may_have_a_host_function(world):
    expect_equal("host", without_success(play(world, "host")), ["memory: 0 7", "calls: 1"])


def case_parameters_of_graphs_that_are_missing_or_wrong_are_errors(world):
    lines = play(world, "misuse")
    wanted = {"cuGraphCreate(&graph, 0)": 0, "cuGraphAddNode(&node, graph, NULL, 0, &of_host)": 801,
              "cuGraphAddKernelNode_v2(&of_kernel, graph, NULL, 0, &kernel)": 0, "cuGraphInstantiateWithFlags(&exec, graph, 0)": 0,
              "cuGraphExecNodeSetParams(exec, node, &of_host)": 801, "cuGraphExecUpdate(exec, graph, NULL, NULL)": 0,
              "cuGraphLaunch(exec, NULL)": 0, "memory": "1 0"}
    filled = "cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, NULL)"  # first with elements of 3 bytes
    expect_equal("fills", [line for line in lines if line.startswith(filled)], [f"{filled}: 1", f"{filled}: 0"])
    for line in lines:
        if not line.startswith(filled):
            call, said = line.rsplit(": ", 1)
            expect_equal(call, said, str(wanted.get(call, 1)))
    expect_equal("the last", lines[-1], "cuGraphDestroy(NULL): 1")
