"""Whether each step is PyTorch's on its own: where two runs part, as at an element on a kink, the later
steps of both are right, from other parameters.

After each of zoo.py's 5 steps our tensors go back by `export --names torch` into the module, which
takes the next step in f64 and in f32. Our loss and parameters after that step must be those in f64 within
1e-5, or 20 times what f32 is off.
"""
import copy
import json
import shutil
import subprocess

import state_dict
import zoo


def state_after(steps, way, folder, program, facts):
    """PyTorch's state_dict after so many steps here, the losses on the way."""
    run, failure = zoo.trained_run(way, folder, program, facts, steps=steps)
    if failure:
        raise RuntimeError(failure["why"])
    losses = zoo.losses_of(run)
    state, _ = state_dict.exported(run, folder / f"step-{steps}.safetensors", program)
    shutil.rmtree(run)
    return state, losses


def one_step(module, inputs, labels, kind, wide):
    """Loss and tensors after one step of a copy of the module, in f64 or f32."""
    module = copy.deepcopy(module)
    if wide:
        return zoo.in_f64(module, inputs, labels, kind, steps=1)
    return zoo.train_in_pytorch(module, inputs, labels, kind, steps=1)


def worst_of_step(module, before, after, trained, inputs, labels, kind):
    """The largest error over its limit of the step from one of our states to the next, and whose."""
    module.load_state_dict(before, strict=False)
    truth = one_step(module, inputs, labels, kind, True)
    narrow = one_step(module, inputs, labels, kind, False)
    worst = (0.0, "")
    for name in trained:
        right = truth[1][name].double()
        noise = float((narrow[1][name].double() - right).norm())
        limit = max(zoo.LIMIT * float(right.norm()), zoo.NOISE * noise, 1e-7)
        worst = max(worst, (float((after[name].double() - right).norm()) / limit, name))
    return worst, truth[0][0], narrow[0][0]


def verdict(name, way, folder, program, facts):
    """None, or why the steps are not PyTorch's one by one."""
    if facts["truth"] != "f64":
        return "the module has no f64"
    module, inputs, labels, kind = state_dict.fresh(name)
    before = {key: value.clone() for key, value in module.state_dict().items()}
    for step in range(1, zoo.STEPS + 1):
        try:
            after, losses = state_after(step, way, folder, program, facts)
        except (RuntimeError, json.JSONDecodeError, subprocess.SubprocessError) as error:
            return f"step {step}: {error}"
        missing = [each for each in facts["trained"] if each not in after]
        if missing:
            return f"step {step}: {missing[:3]} did not come back"
        (worst, at), truth, narrow = worst_of_step(module, before, after, facts["trained"], inputs,
                                                   labels, kind)
        limit = max(zoo.LIMIT * abs(truth), zoo.NOISE * abs(narrow - truth))
        if abs(losses[step - 1] - truth) > limit:
            return f"step {step}: loss {losses[step - 1]} not {truth} from the same parameters"
        if worst > 1.0:
            return f"step {step}: parameter {at} {worst:.3g} limits off from the same parameters"
        before = after
    return None
