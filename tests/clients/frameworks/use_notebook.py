# SPDX-License-Identifier: Apache-2.0
"""Jupyter: the cells of a notebook, run by nbclient; the third runs out of memory if it is told to.  What a cell prints, and its
traceback, are shown as a notebook shows them."""
import re
import sys

import nbclient
import nbformat
from nbformat.v4 import new_code_cell, new_notebook

CELLS = ["import torch\nkept = []", "x = torch.zeros(1 << 28, device='cuda')\nprint(torch.cuda.memory_allocated())",
         "def fill(n):\n    for _ in range(n):\n        kept.append(torch.zeros(1 << 28, device='cuda'))\nfill({n})", "print(len(kept))"]


def main(n):
    notebook = new_notebook(cells=[new_code_cell(cell.replace("{n}", str(n))) for cell in CELLS])
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


sys.exit(main(20 if "fail" in sys.argv else 2))
