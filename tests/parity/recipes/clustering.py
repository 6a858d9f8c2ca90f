"""Clustering: first centers, nearest centers."""

from parity.draw import longs
from parity.recipes import recipe


@recipe("KMC2ChainInitialization")
def markov_chain(d):
    for count in (1, 2, 7, 1024, *((100000,) if d.thorough else ())):
        for seed in (0, 7, -1):
            yield {"distances": d.of("float32").positive(count), "seed": longs(seed)}


@recipe("KmeansPlusPlusInitialization")
def first_centers(d):
    # The points are ordinary and differ: TensorFlow reads out of bounds if no other point is left.
    for points, dimensions, centers in (
        (1, 1, 1),
        (5, 2, 3),
        (5, 2, 5),
        (4, 0, 1),
        (1024, 3, 10),
        *(((5000, 10, 50),) if d.thorough else ()),
    ):
        for seed, retries in ((0, 0), (7, 2)):
            yield {
                "points": d.of("float32").ordinary(points, dimensions),
                "num_to_sample": longs(centers),
                "seed": longs(seed),
                "num_retries_per_sample": longs(retries),
            }


@recipe("NearestNeighbors")
def nearest_neighbors(d):
    for points, dimensions, centers, k in (
        (1, 1, 1, 1),
        (5, 2, 3, 1),
        (5, 2, 3, 2),
        (5, 2, 3, 9),
        (5, 2, 3, 0),
        (5, 0, 3, 2),
        (1, 1024, 3, 1),
        (5, 3, 2000, 1),
        (5, 3, 2000, 5),
        *(((1000, 10, 3000, 1), (1000, 10, 3000, 20)) if d.thorough else ()),
    ):
        # With NaN among the distances, the order is undefined.
        draw = d.of("float32") if k == 1 else d.of("float32").ordinary
        yield {
            "points": draw(points, dimensions),
            "centers": draw(centers, dimensions),
            "k": longs(k),
        }
