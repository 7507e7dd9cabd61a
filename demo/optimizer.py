# SPDX-License-Identifier: MIT
"""Muon for the matrices, Adam for the rest.

Muon steps along the momentum with its singular values made equal (a few Newton-Schulz iterations). For a model this
small on a CPU it reaches the same loss in roughly half the tokens that Adam needs, for some 15 % more time per step.
"""
import torch


def orthogonalized(matrix, iterations=5, bf16=True):
    """Singular values pushed towards 1 by a quintic polynomial; rows <= columns keeps the products small."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
    x = x.bfloat16() if bf16 else x.clone()
    x /= x.norm() + 1e-7
    for _ in range(iterations):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return (x.T if matrix.shape[0] > matrix.shape[1] else x).float()


class Muon(torch.optim.Optimizer):
    """`bf16`: 16-bit products, where the processor has them; elsewhere they are some 20 times slower."""

    def __init__(self, parameters, lr, momentum=0.95, weight_decay=0.01, bf16=True):
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})
        self.bf16 = bf16

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["momentum"] = torch.zeros_like(p)
                state["momentum"].lerp_(p.grad, 1 - group["momentum"])
                update = orthogonalized(p.grad.lerp(state["momentum"], group["momentum"]), bf16=self.bf16)
                scale = max(1.0, p.shape[0] / p.shape[1]) ** 0.5
                p.mul_(1 - group["lr"] * group["weight_decay"]).add_(update, alpha=-group["lr"] * scale)


def optimizers(model, matrix_rate, other_rate, bf16=True):
    matrices = [p for name, p in model.named_parameters() if p.dim() == 2 and not name.startswith("token_embd")]
    others = [p for name, p in model.named_parameters() if p.dim() != 2 or name.startswith("token_embd")]
    return [Muon(matrices, lr=matrix_rate, bf16=bf16), torch.optim.AdamW(others, lr=other_rate, betas=(0.9, 0.95), weight_decay=0.0)]
