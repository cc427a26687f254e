# SPDX-License-Identifier: Apache-2.0
"""Lightning: trains for long, and then keeps what validation makes of the model's outputs, on the GPU."""
import sys
import warnings

import lightning
import torch
from torch import nn

warnings.filterwarnings("ignore")


class Batches(torch.utils.data.Dataset):
    def __init__(self, n, size):
        self.n, self.batch = n, torch.zeros(size, 1024)

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return self.batch


class Net(lightning.LightningModule):
    def __init__(self, is_fixed):
        super().__init__()
        self.layers, self.is_fixed = nn.Sequential(nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 1024)), is_fixed
        self.guesses = []

    def training_step(self, batch):
        return self.layers(batch).square().mean()

    def validation_step(self, batch):
        guess = self.layers(batch).softmax(-1)  # HERE
        self.guesses.append(guess.cpu() if self.is_fixed else guess)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def main(is_fixed):
    trainer = lightning.Trainer(max_epochs=1, accelerator="gpu", devices=1, logger=False, enable_checkpointing=False,
                                enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0)
    data = [torch.utils.data.DataLoader(Batches(n, size), batch_size=None) for n, size in ((600, 16), (120, 2048))]
    trainer.fit(Net(is_fixed), *data)


main("fixed" in sys.argv)
