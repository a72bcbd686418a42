"""Trains the network of the page with PyTorch, and writes `pytorch.safetensors`.

    pip install torch safetensors numpy && python make_checkpoint.py
"""

from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn

here = Path(__file__).parent
torch.manual_seed(0)
table = torch.tensor(np.loadtxt(here / "../data/digits.csv.gz", delimiter=","))
x, y = table[:, :64].float() / 16, table[:, 64].long()
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
for epoch in range(40):
    for batch in torch.randperm(len(x)).split(32):
        # Every second epoch moves the digits by at most one square, because drawings are not centred in the same way.
        moved = torch.roll(x[batch].reshape(-1, 8, 8), tuple(torch.randint(-1, 2, [2]).tolist()), (1, 2)) if epoch % 2 else x[batch]
        loss = nn.functional.cross_entropy(model(moved.reshape(-1, 64)), y[batch], label_smoothing=0.05)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"accuracy on the training samples: {(model(x).argmax(1) == y).float().mean().item():.4f}")
save_file(model.state_dict(), here / "pytorch.safetensors")
