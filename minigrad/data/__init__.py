"""The one data set that comes with minigrad: 1,797 handwritten digits, small enough for a laptop.

README.md beside this file says where it is from, whose it is and how it is laid out.
"""

from pathlib import Path

import numpy as np

__all__ = ["load_digits"]


def load_digits() -> tuple[np.ndarray, np.ndarray]:
    """Read the handwritten digits; returns (images, labels), two fresh arrays.

    images: float32, shape (1797, 64), one 8x8 picture a row, line by line from the top left.
        A pixel is the share of ink in it, from 0 (none) to 1, in steps of 1/16.
    labels: int64, shape (1797,), the digit that was written, 0 to 9.

    Source: E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine
    Learning Repository, 1998, doi:10.24432/C50P49, CC BY 4.0; the test set, in its own order.

    >>> images, labels = load_digits()
    >>> images.shape, images.max(), labels[:5]
    ((1797, 64), np.float32(1.0), array([0, 1, 2, 3, 4]))
    """
    table = np.loadtxt(Path(__file__).with_name("digits.csv.gz"), delimiter=",", dtype=np.int64)
    images = table[:, :64].astype(np.float32) / 16
    labels = table[:, 64].copy()
    return images, labels
