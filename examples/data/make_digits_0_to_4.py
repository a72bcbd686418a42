"""Trains a small network on the digits 0 to 4 with PyTorch and saves it as half precision: `digits_0_to_4.safetensors`.

    pip install torch safetensors numpy && python make_digits_0_to_4.py
"""

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn

torch.manual_seed(0)
table = torch.tensor(np.loadtxt("digits.csv.gz", delimiter=","))
x, y = table[:, :64].float() / 8 - 1, table[:, 64].long()
few = y < 5
x, y = x[few].reshape(-1, 1, 8, 8), y[few]

model = nn.Module()
model.features = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(128, 64),
    nn.ReLU(),
)
model.head = nn.Linear(64, 5)
optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
for epoch in range(20):
    for batch in torch.randperm(len(x)).split(64):
        loss = nn.functional.cross_entropy(model.head(model.features(x[batch])), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"loss of the last batch: {loss.item():.4f}")
save_file({name: tensor.half() for name, tensor in model.state_dict().items()}, "digits_0_to_4.safetensors")
