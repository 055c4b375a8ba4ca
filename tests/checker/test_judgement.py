"""The judgement: labels against what nodes advertise, and what the reasons say."""

import pytest
from tests.checker.support import Json, Result, dump, gpus, node, run_main

A10 = "nvidia.com/GA102GL_A10"
A10_12Q = "nvidia.com/NVIDIA_A10-12Q"
GPU = "nvidia.com/gpu"
MIG = "nvidia.com/mig-1g.10gb"
NIC = "nvidia.com/mlnxnics"


def judge(label: Json, allocatable: Json, *arguments: str, capacity: Json = None) -> Result:
    result = run_main(dump(node("n", label, allocatable, capacity)), *arguments)
    assert result.err == ""
    assert result.lines == (["MISMATCH=n"] if result.code else ["OK=1"])
    return result


@pytest.mark.parametrize(
    ("label", "names", "code"),
    [
        ("container", [GPU], 0),
        ("container", [A10], 1),
        ("container", [A10_12Q], 1),
        ("container", [MIG], 1),
        ("container", ["nvidia.com/gpu.shared"], 1),
        ("container", [], 1),
        ("container", [GPU, NIC], 1),
        ("container", [GPU, MIG], 1),
        ("vm-passthrough", [A10], 0),
        ("vm-passthrough", ["nvidia.com/26b5"], 0),
        ("vm-passthrough", [GPU], 1),
        ("vm-passthrough", [A10_12Q], 1),
        ("vm-passthrough", [MIG], 1),
        ("vm-passthrough", [A10, "nvidia.com/AD102GL_L40S"], 1),
        ("vm-vgpu", [A10_12Q], 0),
        ("vm-vgpu", [A10], 1),
        ("vm-vgpu", [GPU], 1),
        ("vm-vgpu", [A10_12Q, "nvidia.com/NVIDIA_A10-4Q"], 1),
        ("vm-vgpu", [A10_12Q, GPU], 1),
        ("Container", [GPU], 1),
        ("container ", [GPU], 1),
        ("", [GPU], 1),
        ("vm-gpu", [A10_12Q], 1),
        (5, [GPU], 1),
        (True, [GPU], 1),
        (["container"], [GPU], 1),
        ({"a": {}}, [GPU], 1),
    ],
)
def test_strict_rule(label: Json, names: list[str], code: int) -> None:
    allocatable: dict[str, str] = {"cpu": "8", "amd.com/gpu": "4"}
    assert judge(label, allocatable | dict.fromkeys(names, "2")).code == code


def test_zero_is_absent() -> None:
    assert judge("vm-passthrough", {GPU: "0", A10: "2", MIG: 0, NIC: None, A10_12Q: ""}).code == 0
    assert judge("container", {GPU: "0"}).code == 1


def test_unreadable_quantity_is_present_and_named() -> None:
    assert judge("container", {GPU: "many"}).code == 0
    result = judge("container", {GPU: "4", A10: "some thing"})
    assert rf"{A10}=some\x20thing (device model, a quantity that cannot be read)" in result.out


@pytest.mark.parametrize("missing", ["absent", "null"])
def test_capacity_where_there_is_no_allocatable(missing: str) -> None:
    item = node("n", "container", capacity={GPU: "4"})
    if missing == "null":
        item["status"] = {"allocatable": None, "capacity": {GPU: "4"}}
    assert run_main(dump(item)).out == "OK=1\n"
    wrong = judge("vm-vgpu", None, capacity={GPU: "4"})
    assert "in capacity: the node has no allocatable" in wrong.out


def test_empty_allocatable_is_an_answer() -> None:
    result = judge("container", {}, capacity={GPU: "4"})
    assert result.code == 1
    assert "capacity still has nvidia.com/gpu=4" in result.out


def test_text_elsewhere_never_counts() -> None:
    item = node("n", "container", {GPU: "1"})
    item["metadata"] = {
        "name": "n",
        "labels": {"nvidia.com/gpu.workload.config": "container", A10: "1"},
        "annotations": {A10_12Q: "4", "status": '{"allocatable":{"nvidia.com/GA102GL_A10":"1"}}'},
        "managedFields": [{"fieldsV1": {"f:status": {"f:allocatable": {f"f:{A10}": {}}}}}],
    }
    item["allocatable"] = {A10: "3"}
    assert run_main(dump(item)).out == "OK=1\n"


def test_names_are_case_sensitive_and_anchored() -> None:
    others = {
        "Nvidia.com/gpu": "1",
        "x.nvidia.com/gpu": "1",
        " nvidia.com/gpu": "1",
        "nvidia.com": "1",
    }
    assert judge("container", {GPU: "1", **others}).code == 0


class TestAccept:
    MIGS = ("--accept", "container=nvidia.com/mig-*")

    def test_one_several_and_beside_the_own_name(self) -> None:
        for names in ([MIG], [MIG, "nvidia.com/mig-2g.20gb"], [MIG, GPU]):
            assert judge("container", dict.fromkeys(names, "1"), *self.MIGS).code == 0

    def test_only_for_its_label(self) -> None:
        assert judge("vm-passthrough", {MIG: "1"}, *self.MIGS).code == 1

    def test_others_still_count(self) -> None:
        assert judge("container", {MIG: "1", A10: "1"}, *self.MIGS).code == 1

    def test_two_own_names_are_still_two(self) -> None:
        models = {A10: "1", "nvidia.com/AD102GL_L40S": "1", "nvidia.com/pgpu": "1"}
        accept = ("--accept", "vm-passthrough=nvidia.com/pgpu")
        assert judge("vm-passthrough", models, *accept).code == 1
        del models[A10]
        assert judge("vm-passthrough", models, *accept).code == 0

    def test_nothing_is_still_a_mismatch(self) -> None:
        assert judge("container", {MIG: "0"}, *self.MIGS).code == 1

    def test_does_not_make_a_label_value_valid(self) -> None:
        assert judge("Container", {MIG: "1"}, *self.MIGS).code == 1

    def test_repeats_and_equals_signs(self) -> None:
        names = {"nvidia.com/a=b": "1", MIG: "1"}
        options = ("--accept=container=nvidia.com/a=?", "--accept=container=nvidia.com/mig-*")
        assert judge("container", names, *options).code == 0

    def test_case_counts_and_the_whole_name(self) -> None:
        for pattern in ("nvidia.com/MIG-*", "mig-*", "nvidia.com/mig"):
            assert judge("container", {MIG: "1"}, "--accept", f"container={pattern}").code == 1


class TestIgnore:
    def test_leaves_names_out(self) -> None:
        names = {GPU: "8", NIC: "8", "nvidia.com/nvswitch": "4"}
        assert judge("container", names, "--ignore", NIC).code == 1
        options = ("--ignore", NIC, "--ignore=nvidia.com/nv*")
        assert judge("container", names, *options).code == 0

    def test_nothing_left_is_a_mismatch(self) -> None:
        assert judge("container", {GPU: "8"}, "--ignore", "*").code == 1

    def test_wins_over_accept(self) -> None:
        options = ("--ignore", MIG, "--accept", f"container={MIG}")
        assert judge("container", {MIG: "1"}, *options).code == 1


@pytest.mark.parametrize(
    ("label", "meant"),
    [
        ("vm-gpu", "vm-vgpu"),
        ("vgpu", "vm-vgpu"),
        ("VM-vGPU", "vm-vgpu"),
        ("vm_passthrough", "vm-passthrough"),
        ("passthrough", "vm-passthrough"),
        ("vm-passtrough", "vm-passthrough"),
        ("vm-container", "container"),
        ("containers", "container"),
        ("Container", "container"),
        (" container", "container"),
    ],
)
def test_near_value_is_named(label: str, meant: str) -> None:
    out = judge(label, {GPU: "1"}).out
    assert "silently falls back to its default" in out
    assert f"did you mean {meant}; if so: kubectl label node n " in out


@pytest.mark.parametrize("label", ["", "none", "x" * 5000, "\u00e9", "true"])
def test_no_near_value_is_invented(label: str) -> None:
    out = judge(label, {GPU: "1"}).out
    assert "silently falls back to its default" in out
    assert "did you mean" not in out


@pytest.mark.parametrize(
    ("label", "allocatable", "words"),
    [
        (
            "vm-passthrough",
            {GPU: "8"},
            "the device plugin of container remained, or the label is wrong",
        ),
        (
            "container",
            {A10: "2"},
            "the device plugin of vm-passthrough remained, or the label is wrong",
        ),
        (
            "container",
            {A10_12Q: "2"},
            "the device plugin of vm-vgpu remained, or the label is wrong",
        ),
        (
            "vm-passthrough",
            {MIG: "7"},
            "the device plugin of container remained, or the label is wrong",
        ),
        ("vm-vgpu", {"nvidia.com/NVIDIA_A10-12q": "2"}, "profile in the wrong case"),
        ("vm-vgpu", {"nvidia.com/GRID_T4_2Q": "2"}, "with _ where - belongs"),
        ("vm-vgpu", {"nvidia.com/NVIDIA_A10-12": "2"}, "without its series letter"),
        ("container", {MIG: "7"}, "--accept container='nvidia.com/mig-*'"),
        (
            "container",
            {"nvidia.com/gpu.shared": "7"},
            "--accept container=nvidia.com/gpu.shared",
        ),
        ("container", {GPU: "8", NIC: "8"}, f"--ignore {NIC}"),
        ("vm-passthrough", {A10: "1", NIC: "8"}, f"--ignore {NIC}"),
        (
            "vm-passthrough",
            {A10: "1", "nvidia.com/GA100_A100_NVSwitch": "6"},
            "--ignore nvidia.com/GA100_A100_NVSwitch",
        ),
        ("vm-vgpu", {A10_12Q: "1", "nvidia.com/A10-4Q": "1", NIC: "8"}, "one kind of GPU work"),
        (
            "vm-passthrough",
            {A10: "1", "nvidia.com/GA102_High_Definition_Audio_Controller": "1"},
            "--ignore nvidia.com/GA102_High_Definition_Audio_Controller",
        ),
        ("container", {"nvidia.com/vgpu-number": "10"}, "another device plugin"),
        ("vm-vgpu", {A10_12Q: "1", "nvidia.com/GRID_T4-2Q": "1"}, "one kind of GPU work"),
        ("container", {GPU: "0"}, "registered, but with no device"),
        ("container", {}, "no device plugin has registered"),
        ("container", None, "no device plugin has registered"),
    ],
)
def test_likely_cause(label: str, allocatable: Json, words: str) -> None:
    assert words in judge(label, allocatable).out


@pytest.mark.parametrize(
    ("label", "labels", "cause", "command"),
    [
        (
            "container",
            {"nvidia.com/gpu.deploy.device-plugin": "false"},
            "nvidia.com/gpu.deploy.device-plugin=false switches it off",
            "kubectl label node n1 nvidia.com/gpu.deploy.device-plugin-",
        ),
        (
            "vm-passthrough",
            {"nvidia.com/gpu.deploy.vfio-manager": "false"},
            "gpu.deploy.vfio-manager=false",
            "kubectl label node n1 nvidia.com/gpu.deploy.vfio-manager-",
        ),
        (
            "vm-vgpu",
            {"nvidia.com/gpu.deploy.operands": "false"},
            "nvidia.com/gpu.deploy.operands=false",
            "kubectl label node n1 nvidia.com/gpu.deploy.operands-",
        ),
        (
            "container",
            {"nvidia.com/gpu.deploy.driver": "paused-for-driver-upgrade"},
            "nvidia.com/gpu.deploy.driver=paused-for-driver-upgrade: it comes back after",
            "kubectl get node n1 -L nvidia.com/gpu-driver-upgrade-state",
        ),
        (
            "container",
            {"nvidia.com/gpu.deploy.dra-driver": "true"},
            "DRA stack serves this node and does not read the label",
            "kubectl get resourceslices --field-selector spec.nodeName=n1",
        ),
        (
            "container",
            {"node-role.kubernetes.io/control-plane": ""},
            "a control-plane node without cards",
            "kubectl label node n1 nvidia.com/gpu.workload.config-",
        ),
        (
            "container",
            {"nvidia.com/gpu.present": "true"},
            "no device plugin has registered on this node; see",
            "kubectl get pods -A -o wide --field-selector spec.nodeName=n1",
        ),
        ("container", {}, "nvidia.com/gpu.present is not true", "kubectl get pods -A"),
        # what does not keep the node from advertising is no cause
        ("container", {"nvidia.com/gpu.deploy.dcgm": "false"}, "no device plugin", "kubectl get"),
        (
            "vm-vgpu",
            {"nvidia.com/gpu.deploy.device-plugin": "false"},
            "no device plugin has registered",
            "kubectl get pods",
        ),
    ],
    ids=range(10),
)
def test_labels_tell_why_nothing_is_advertised(
    label: str, labels: dict[str, str], cause: str, command: str
) -> None:
    item = node("n1", label, {"cpu": "4"})
    item["metadata"] = {"name": "n1", "labels": {"nvidia.com/gpu.workload.config": label} | labels}
    out = run_main(dump(item)).out
    assert f"label {label}, but advertises no nvidia.com/ resource; expected" in out
    assert cause in out
    assert command in out.split("; ")[-1]


def test_the_command_puts_the_label_right() -> None:
    out = run_main(dump(node("gpu-7", "vm-gpu", {A10_12Q: "1"}))).out
    fix = "kubectl label node gpu-7 nvidia.com/gpu.workload.config=vm-vgpu --overwrite\n"
    assert out.endswith(fix)
    assert run_main(dump(node("gpu-7", "container", {A10_12Q: "1"}))).out.endswith(fix)


@pytest.mark.parametrize("name", ["NODE", "a\0b", "-x", "a b", "$(id)"])
def test_no_command_names_a_node_that_a_shell_would_obey(name: str) -> None:
    out = run_main(dump(node(name, "container", {"nvidia.com/GA100_NODE": "1"}))).out
    assert ("kubectl label node NODE " in out) == (name == "NODE")
    assert "GA100_NODE=1" in out
    assert "\0" not in out


HYPHENATED = ["GA100_A100-SXM-64GB", "TU104GL_Quadro_RTX_5000-Max-Q"]


@pytest.mark.parametrize("name", HYPHENATED)
def test_a_model_with_hyphens_is_the_operators_too(name: str) -> None:
    """sandbox-device-plugin with an empty P_GPU_ALIAS keeps them."""
    assert judge("vm-passthrough", {f"nvidia.com/{name}": "1"}).code == 0
    out = judge("container", {f"nvidia.com/{name}": "1"}).out
    assert "another device plugin" not in out
    assert "the device plugin of vm-passthrough remained, or the label is wrong" in out


def test_a_passthrough_node_with_an_unknown_name_alone_agrees_with_a_warning() -> None:
    nodes = [node(f"n{n}", "vm-passthrough", {NIC: "8"}) for n in range(7)]
    nodes += [node("known", "vm-passthrough", {A10: "2"})]
    result = run_main(dump(*nodes))
    assert (result.code, result.out) == (0, "OK=8\n")
    assert result.err == (
        "check-config: warning: vm-passthrough nodes that agree only by an unknown name, which is"
        f" no card's: 7 (n0 ({NIC}), n1 ({NIC}), n2 ({NIC}), n3 ({NIC}), n4 ({NIC}), ...)\n"
    )
    accept = ("--accept", f"vm-passthrough={NIC}")
    assert run_main(dump(*nodes), *accept).err == ""


def test_nodes_without_the_label_that_advertise_gpus_are_told() -> None:
    plain = [node(f"n{n}", None, gpus(gpu="4")) for n in range(6)]
    others = [node("none", None, gpus(gpu="0k")), node("nic", None, {NIC: "1"})]
    odd = node("odd")
    odd["status"] = "what nobody judges is not looked into"
    good = node("good", "container", gpus(gpu="4"))
    result = run_main(dump(*plain, *others, odd, good), "--ignore", NIC)
    assert result.out == "OK=1\n"
    assert result.err == (
        "check-config: warning: nodes without the label nvidia.com/gpu.workload.config that"
        " advertise GPUs: 6 (n0, n1, n2, n3, n4, ...)\n"
    )
    alone = run_main(dump(*plain[:1]))
    assert (alone.out, alone.err.count("\n")) == ("OK=0\n", 1)
    assert alone.err.endswith("workload.config; nodes without it that advertise GPUs: 1 (n0)\n")


def test_plugin_gone() -> None:
    out = judge("vm-vgpu", {A10_12Q: "0"}, capacity={A10_12Q: "16", "cpu": "4"}).out
    assert f"capacity still has {A10_12Q}=16: the device plugin is gone" in out
    assert "cpu" not in out


def test_what_is_ignored_is_no_cause() -> None:
    nothing = {**gpus(gpu="0"), NIC: "8"}
    out = judge("container", {NIC: "8"}, "--ignore", NIC, capacity={NIC: "8"}).out
    assert "left out by --ignore" in out
    assert "plugin" not in out
    out = judge("container", nothing, "--ignore", NIC, capacity={GPU: "4", NIC: "8"}).out
    assert f"capacity still has {GPU}=4: the device plugin is gone" in out
    out = judge("container", nothing, "--ignore", NIC, capacity=nothing).out
    assert "registered, but with no device" in out


@pytest.mark.parametrize("name", ["GA102GL_A10", "GM107M_GeForce_GTX_860M", "26b5"])
def test_a_gpu_is_not_suggested_to_be_ignored(name: str) -> None:
    assert "--ignore" not in judge("container", {GPU: "8", f"nvidia.com/{name}": "1"}).out


def test_reason_has_label_names_quantities_and_expectation() -> None:
    out = judge("container", {GPU: "8", A10: 2}).out
    assert out == (
        "MISMATCH=n label container, but advertises nvidia.com/GA102GL_A10=2 (device model),"
        " nvidia.com/gpu=8 (container); expected nvidia.com/gpu alone;"
        " one worker node runs one kind of GPU work;"
        " see what runs there: kubectl get pods -A -o wide --field-selector spec.nodeName=n\n"
    )


@pytest.mark.parametrize("name", ["x'; rm -rf ~; '", "$(reboot)", "a b", "`id`", "\u202e"])
def test_no_command_is_suggested_with_a_name_that_a_shell_would_obey(name: str) -> None:
    out = judge("container", {GPU: "8", f"nvidia.com/{name}": "1"}).out
    assert "--ignore" not in out


def test_a_flood_of_names_is_not_all_shown() -> None:
    out = judge("container", {f"nvidia.com/m{n:05}": "1" for n in range(5000)}).out
    assert "and 4988 more" in out
    assert len(out) < 2000


def test_order_is_the_files_and_unlabelled_nodes_do_not_count() -> None:
    nodes = [
        node("z", "container", gpus(A10="1")),
        node("y", None, gpus(A10="1")),
        node("x", "container", gpus(gpu="1")),
        node("a", "vm-vgpu", gpus(gpu="1")),
    ]
    assert run_main(dump(*nodes)).lines == ["MISMATCH=z", "MISMATCH=a"]
    assert run_main(dump(*nodes[1:3])).out == "OK=1\n"
