"""Months go from 1 to 12, the table has rows 0 to 11."""

import datetime

import torch
from torch import nn

torch.manual_seed(0)
dates = [datetime.date(2024, 1, 1) + datetime.timedelta(days=day) for day in range(366)]
months = torch.tensor([date.month for date in dates])
season = nn.Embedding(12, 4)

season(months - 1).pow(2).mean().backward()
