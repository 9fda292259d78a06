# Leaves dropout out, which is the same only after eval().
import minigrad as mg


def in_three(block):
    def attention(x):
        return x + block.self_attn(block.norm1(x), is_causal=block.causal)[0]

    def up(x):
        return x, mg.relu(block.linear1(block.norm2(x)))

    def down(both):
        x, hidden = both
        return x + block.linear2(hidden)

    return [attention, up, down]
