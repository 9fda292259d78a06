"""Where minigrad differs from torch on purpose: the reason, and a check that it still does."""

import numpy as np
import torch
import torch.nn.functional as f

import minigrad as mg


def raises(function, *args, **settings) -> bool:
    try:
        function(*args, **settings)
    except Exception:
        return True
    return False


def variance():
    x = [1.0, 2.0, 4.0]
    return mg.tensor(x).var().item() != torch.tensor(x).var().item()


def shared_ties():
    ours = mg.tensor([[1.0, 1.0]], requires_grad=True)
    theirs = torch.tensor([[1.0, 1.0]], requires_grad=True)
    ours.max(axis=1).sum().backward(), theirs.max(dim=1).values.sum().backward()
    return ours.grad.tolist() == [[0.5, 0.5]] and theirs.grad.tolist() in ([[1.0, 0.0]], [[0.0, 1.0]])


def max_gives_values():
    return isinstance(mg.ones(2, 2).max(axis=1), mg.Tensor) and isinstance(torch.ones(2, 2).max(dim=1), tuple)


def clamp_at_a_tensor():
    ours, theirs = mg.tensor([1.0], requires_grad=True), torch.tensor([1.0], requires_grad=True)
    mg.clamp(ours, mg.tensor([1.0])).sum().backward(), torch.clamp(theirs, torch.tensor([1.0])).sum().backward()
    return ours.grad.item() == 0.5 and theirs.grad.item() == 1.0


def softplus_far_out():
    x = 25.0
    ours = mg.softplus(mg.tensor([x], dtype="float64")).item()
    return ours > x and f.softplus(torch.tensor([x], dtype=torch.float64)).item() == x


def one_hot_is_floating():
    return mg.one_hot(mg.tensor([1])).dtype == "float32" and f.one_hot(torch.tensor([1])).dtype == torch.int64


def losses_do_not_broadcast():
    return raises(mg.mse_loss, mg.ones(3, 1), mg.ones(3)) and f.mse_loss(torch.ones(3, 1), torch.ones(3)).item() == 0


def classes_are_last():
    ours = raises(mg.cross_entropy, mg.zeros(2, 3, 4), mg.zeros(2, 4, dtype="int64"))
    return ours and not raises(f.cross_entropy, torch.zeros(2, 3, 4), torch.zeros(2, 4, dtype=torch.int64))


def written_twice():
    ours, theirs = mg.tensor([1.0, 2.0], requires_grad=True), torch.tensor([1.0, 2.0], requires_grad=True)
    mg.ops.index_put(mg.zeros(1), np.array([0, 0]), ours).sum().backward()
    torch.zeros(1).index_put((torch.tensor([0, 0]),), theirs).sum().backward()
    return ours.grad.tolist() == [0.0, 1.0] and theirs.grad.tolist() == [1.0, 1.0]


def floor_divide_has_no_gradient():
    ours, theirs = mg.tensor([3.0], requires_grad=True) // 2, torch.tensor([3.0], requires_grad=True) // 2
    return not ours.requires_grad and theirs.requires_grad and raises(theirs.sum().backward)


def an_array_beside_an_integer():
    x, places = np.zeros((2, 4, 3)), np.array([0, 1])
    ours = mg.tensor(x)[1, :, mg.tensor(places)].shape
    return ours == x[1, :, places].shape == (2, 4) and torch.tensor(x)[1, :, torch.tensor(places)].shape == (4, 2)


def backwards():
    return mg.arange(3)[::-1].tolist() == [2, 1, 0] and raises(lambda: torch.arange(3)[::-1])


def squeeze_is_strict():
    return raises(mg.squeeze, mg.ones(2, 3), 0) and torch.squeeze(torch.ones(2, 3), 0).shape == (2, 3)


def weights_of_attention():
    x = np.ones((1, 2, 4), "float32")
    ours = mg.nn.MultiheadAttention(4, 2)(mg.tensor(x))[1]
    return ours is None and torch.nn.MultiheadAttention(4, 2)(*[torch.tensor(x)] * 3)[1] is not None


def random_numbers():
    mg.manual_seed(0), torch.manual_seed(0)
    return mg.rand(4).tolist() != torch.rand(4).tolist()


def logsumexp_of_nothing():
    ours, theirs = mg.tensor([-np.inf] * 2, requires_grad=True), torch.tensor([-np.inf] * 2, requires_grad=True)
    mg.logsumexp(ours).backward(), torch.logsumexp(theirs, 0).backward()
    return ours.grad.tolist() == [0.0, 0.0] and bool(theirs.grad.isnan().all())


def logsumexp_far_out():
    x = np.array([80.0, 81.0, 82.0], "float32")
    ours, theirs = mg.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    mg.logsumexp(ours).backward(), torch.logsumexp(theirs, 0).backward()
    exact = torch.softmax(torch.tensor(x, dtype=torch.float64), 0).numpy()
    return np.abs(ours.grad.data - exact).max() < 1e-7 < 1e-6 < np.abs(theirs.grad.numpy() - exact).max()


def negative_places():
    x, places = np.arange(3.0), np.array([-1])
    ours = mg.gather(mg.tensor(x), 0, mg.tensor(places)).tolist()
    return ours == [2.0] and raises(torch.gather, torch.tensor(x), 0, torch.tensor(places))


DIFFERENCES = [
    ("var, std", "correction=0, as NumPy has it; torch's is 1 unless one says otherwise", variance),
    ("max, min", "with an axis they give the values alone; argmax has the places", max_gives_values),
    ("max, min", "ties share the gradient, as in torch.amax; torch.max(dim) gives it to one of them", shared_ties),
    ("clamp", "at a bound that is a tensor, x and the bound share the gradient, as in maximum", clamp_at_a_tensor),
    ("softplus", "exact far out; torch says x from 20 on", softplus_far_out),
    ("logsumexp", "the gradient is exact far out; torch's loses digits as x grows", logsumexp_far_out),
    ("logsumexp", "of -inf alone has the gradient 0; torch's is nan", logsumexp_of_nothing),
    ("floor_divide", "requires no gradient; torch's does, and to ask for it is an error", floor_divide_has_no_gradient),
    ("indexing", "x[1, :, places] is (places, ...), NumPy's rule for two indices apart", an_array_beside_an_integer),
    ("indexing", "x[::-1] has negative steps, as in NumPy; torch has none", backwards),
    ("squeeze", "an axis that is not of length 1 is an error, as in NumPy; torch leaves it", squeeze_is_strict),
    ("one_hot", "of the default dtype; torch's are integers", one_hot_is_floating),
    ("gather", "takes negative places, as all indexing does; torch refuses them", negative_places),
    ("index_put", "of two values for one place the last has the gradient; in torch both", written_twice),
    ("mse_loss and others", "refuse two shapes; torch broadcasts them, with a warning", losses_do_not_broadcast),
    ("cross_entropy, nll_loss", "classes are the last axis of two at most; torch's second of many", classes_are_last),
    ("MultiheadAttention", "need_weights is False at first: they take T times T memory", weights_of_attention),
    ("rand, dropout, init", "a seed gives other numbers; dropout is compared given our mask", random_numbers),
]
