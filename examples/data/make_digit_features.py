"""Learns features of handwritten digits with PyTorch from images without labels, and writes `digit_features.safetensors` in half precision.

Two distorted copies of one image should get similar features, and copies of different images should get different features (T. Chen et al.,
"A simple framework for contrastive learning of visual representations", 2020). The training uses only the first 1,200 rows of the table.

    pip install torch safetensors numpy && python make_digit_features.py
"""

import math

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
table = torch.tensor(np.loadtxt("digits.csv.gz", delimiter=","))
x = (table[:1200, :64].float() / 8 - 1).reshape(-1, 1, 8, 8)  # from -1 to 1


def distorted(x):
    """Rotates, scales, shears and shifts each image a little at random, and adds noise."""
    n = len(x)
    angle = (torch.rand(n) - 0.5) * 2 * math.radians(20)
    scale = 1 + (torch.rand(n, 2) - 0.5) * 0.4
    slant = (torch.rand(n) - 0.5) * 0.6
    move = (torch.rand(n, 2) - 0.5) * 0.5  # of half the width of an image
    cos, sin = angle.cos(), angle.sin()
    rows = [torch.stack([cos * scale[:, 0], -sin + slant, move[:, 0]], 1), torch.stack([sin, cos * scale[:, 1], move[:, 1]], 1)]
    grid = F.affine_grid(torch.stack(rows, 1), x.shape, align_corners=False)
    moved = F.grid_sample(x + 1, grid, align_corners=False) - 1  # 0, which is outside, is paper
    return moved + 0.1 * torch.randn_like(moved)


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
head = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32))
optimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()], 2e-3)
EPOCHS = 400
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
for epoch in range(EPOCHS):
    for batch in torch.randperm(len(x)).split(240):
        both = torch.cat([distorted(x[batch]), distorted(x[batch])])
        z = F.normalize(head(model.features(both)), dim=1)
        similar = z @ z.T / 0.2
        similar.fill_diagonal_(-math.inf)
        other = torch.arange(len(z)).roll(len(batch))
        loss = F.cross_entropy(similar, other)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    schedule.step()
print(f"loss of the last batch: {loss.item():.4f}")
save_file({name: tensor.half() for name, tensor in model.state_dict().items()}, "digit_features.safetensors")
