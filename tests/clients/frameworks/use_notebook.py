# SPDX-License-Identifier: Apache-2.0
"""Jupyter: the cells of a notebook, run by nbclient; the third makes tensors: use_notebook.py TENSORS [host] [extension].  What a
cell prints, and its traceback, are shown as a notebook shows them."""
import re
import sys

import nbclient
import nbformat
from nbformat.v4 import new_code_cell, new_notebook

FILL = """def fill(n):
    for _ in range(n):
        made = torch.zeros(1 << 24, device='cuda')
        kept.append(made.cpu() if {is_on_host} else made)
fill({n})"""


def main(n, ways):
    cells = ["%load_ext gpucache" if "extension" in ways else "pass",
             "import torch\nkept = []\nx = torch.zeros(1 << 24, device='cuda')",
             FILL.format(n=n, is_on_host="host" in ways), "print(len(kept), torch.cuda.max_memory_allocated())"]
    notebook = new_notebook(cells=[new_code_cell(cell) for cell in cells])
    try:
        nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    except nbclient.exceptions.CellExecutionError:
        status = 1
    else:
        status = 0
    for cell in notebook.cells:
        for output in cell.outputs:
            text = output.get("text") or "\n".join(output["traceback"])
            print(re.sub(r"\x1b\[[0-9;]*m", "", text))
    return status


sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
