"""What lesson 10 says of a network of unequal layers: bytes from shapes, and the chain on which 7 beats 8."""

import pytest

from minigrad import schedules

pytestmark = pytest.mark.lesson

BATCH, NUMBER = 4, 4  # images, and bytes of a number
# (channels, side of the image) that each layer puts out: four convolutions and a pooling, twice, and four more
OUTPUTS = [*[(8, 8)] * 4, (8, 4), *[(16, 4)] * 4, (16, 2), *[(32, 2)] * 4]
POOLING = (4, 9)


@pytest.fixture
def run(lesson):
    return lesson("10")


def image_bytes(channels, side):
    return BATCH * NUMBER * channels * side * side


def kept_bytes(layer):
    """A convolution keeps its output, for relu and the next layer; pooling also the places, a byte each."""
    size = image_bytes(*OUTPUTS[layer])
    return size + size // NUMBER if layer in POOLING else size


def test_each_stage_has_half_the_bytes_and_the_same_operations(run):
    layers = run["measured"].layers
    assert [layer.output_bytes for layer in layers] == [image_bytes(*shape) for shape in OUTPUTS]
    assert [layer.kept_bytes for layer in layers] == [kept_bytes(layer) for layer in range(14)]
    operations = run["operations"]
    assert operations[1] == pytest.approx(operations[6], rel=0.04) == pytest.approx(operations[11], rel=0.04)
    inputs = [1, *[channels for channels, _ in OUTPUTS]]
    for layer, (channels, side) in enumerate(OUTPUTS):
        if layer not in POOLING:
            products = BATCH * channels * side * side * inputs[layer] * 9
            assert operations[layer] == pytest.approx(products, rel=0.34 if layer == 0 else 0.05)


def test_storing_all_holds_the_images_of_all_layers(run):
    images = image_bytes(1, 8) + sum(map(kept_bytes, range(14)))
    assert run["everything"] == images
    assert f"storing all: {images:,} bytes" in run.lines()


def test_fewer_activations_can_be_more_bytes(run):
    equal = run["equal"]
    (few, many_bytes, _), (many, few_bytes, _) = equal[3], equal[5]
    assert few < many and many_bytes > few_bytes


def test_forecasts_of_equal_segments_are_what_a_tracer_sees(run):
    lines = run.lines("uniform(")
    assert len(lines) == 6
    for line in lines:
        measured, forecast = [part.split(" bytes")[0].split()[-1] for part in (line, line.split("forecast")[1])]
        assert measured == forecast


def test_predicted_bytes_are_measured_bytes_for_every_budget(run):
    assert run["half"].predicted_bytes == run["half_run"].peak_activation_bytes <= run["everything"] // 2
    assert run["half_run"].replayed_ops == run["half_forecast"].replayed_ops
    assert len(run["checked"]) == 6
    for budget, (predicted, measured) in run["checked"].items():
        assert predicted == measured <= budget


def test_the_optimum_is_below_all_equal_segments_and_falls_with_the_budget(run):
    best = sorted(run["best"].items())
    shares = [share for _, (_, share) in best]
    assert shares == sorted(shares, reverse=True) and shares[-1] == 0
    for _, held, share in run["equal"].values():
        for budget, (size, least_share) in best:
            assert budget > held or size <= held
            assert budget < held or least_share <= share
    below = [share for _, (size, share) in best if size <= run["equal"][5][1]]
    assert min(below) < run["equal"][5][2] / 2 + 0.01


def test_at_half_the_bytes_the_small_layers_at_the_end_are_taped(run):
    parts = run["half"].split(14)
    assert parts[-1] == (7, None) and all(inner is not None for _, inner in parts[:-1])


def test_fit_keeps_to_the_budget_and_says_the_least_possible(run):
    fitted, measured = run["fitted"], run["fitted_run"]
    assert fitted.predicted_bytes == measured.peak_activation_bytes <= run["everything"] // 2
    assert fitted.replayed_ops == measured.replayed_ops
    least = run["least"]
    assert least == image_bytes(1, 8) + 3 * image_bytes(8, 8)  # x; a convolution's input, output, and relu's
    assert f"{least:,} bytes" in run["refused"]
    assert run["with_the_least"].predicted_bytes == least
    assert [line.split(": ")[-1] for line in run.lines("predicted and measured")] == ["True", "True"]


def test_a_schedule_that_was_made_for_one_image_breaks_the_budget_of_four(run):
    assert run["wrong"].predicted_bytes * BATCH == run["broken_bytes"] == run["everything"]
    assert run["repaired_bytes"] <= run["budget_of_four"] < run["broken_bytes"]


def test_three_layers_take_eight_with_persistence_and_seven_without(run):
    assert (run["persistent"].predicted_time, run["optimum"].time) == (8, 7)
    assert "drop the output of layer 0" in run["optimum"].moves
    assert schedules.exhaustive_optimum(run["small"], 5).time == 6 == run["small"].store_all_time
    assert "persistent: 8 units of time" in run.lines() and "everything tried: 7 units of time" in run.lines()
