"""Every flag of DGL-KE 0.1.2, with its abbreviations and defaults; flags that cannot be honoured are refused."""

from __future__ import annotations

import ast
import re
from importlib import metadata
from pathlib import Path

import pytest
from graphwire.kge import flags
from graphwire.kge.dist_train import launcher

# DGL-KE's list, from its argument parsers, and from its documentation: --no_save_embed and --topk.
DATA = "--data_path --dataset --format --data_files --delimiter --has_edge_importance"
COMMON = f"""{DATA} --model_name --save_path --no_save_emb --no_save_embed --max_step --batch_size --batch_size_eval
    --neg_sample_size --neg_deg_sample --neg_deg_sample_eval --neg_sample_size_eval --eval_percent
    --no_eval_filter -log --log_interval --eval_interval --test --num_thread --force_sync_interval --hidden_dim
    --lr -g --gamma -de --double_ent -dr --double_rel -adv --neg_adversarial_sampling -a
    --adversarial_temperature -rc --regularization_coef -rn --regularization_norm -pw --pairwise --loss_genre -m
    --margin --valid --gpu --mix_cpu_gpu --async_update"""
LISTS = {
    "partition": f"{DATA} -k --num-parts",
    "train": f"{COMMON} --num_proc --rel_part",
    "dist_train": f"{COMMON} --path --ssh_key --ip_config --num_client_proc",
    "eval": f"""{DATA} --model_name --model_path --batch_size_eval --neg_sample_size_eval --neg_deg_sample_eval
        --hidden_dim -g --gamma --eval_percent --no_eval_filter --gpu --mix_cpu_gpu -de --double_ent
        -dr --double_rel --num_proc --num_thread""",
    "predict": """--data_path --model_path --format --data_files --raw_data --exec_mode --topK --topk --score_func
        --output --gpu --entity_mfile --rel_mfile""",
    "emb_sim": """--mfile --emb_file --format --data_files --raw_data --exec_mode --topK --topk --sim_func --output
        --gpu"""}
DEFAULTS = {
    "model_name": "TransE", "data_path": "data", "dataset": "FB15k", "format": "built_in", "delimiter": "\t",
    "save_path": "ckpts", "max_step": 80000, "batch_size": 1024, "batch_size_eval": 8, "neg_sample_size": 256,
    "neg_sample_size_eval": -1, "eval_percent": 1, "log_interval": 1000, "eval_interval": 10000, "num_proc": 1,
    "num_thread": 1, "force_sync_interval": -1, "hidden_dim": 400, "lr": 0.01, "gamma": 12.0,
    "adversarial_temperature": 1.0, "regularization_coef": 0.000002, "regularization_norm": 3,
    "loss_genre": "Logsigmoid", "margin": 1.0, "gpu": [-1], "test": False, "double_ent": False, "pairwise": False}


@pytest.mark.parametrize("command", flags.COMMANDS)
def test_every_flag_of_the_list_is_there(command):
    found = {name for flag in flags.FLAGS if command in flag.commands and not flag.own for name in flag.names}
    assert found - {"--num_parts"} == set(LISTS[command].split())
    own = [flag for flag in flags.FLAGS if command in flag.commands and flag.own]
    assert all(name not in LISTS[command].split() for flag in own for name in flag.names)


def test_defaults_are_those_of_the_list():
    args = flags.parse("train", [])
    assert {name: getattr(args, name) for name in DEFAULTS} == DEFAULTS
    assert flags.parse("predict", ["--format", "h_r_t"]).topK == 10


def test_abbreviations():
    args = flags.parse("train", "-g 19.9 -adv -a 2 -rc 1e-9 -rn 2 -log 7 -de -dr --no_save_embed".split())
    assert (args.gamma, args.neg_adversarial_sampling, args.adversarial_temperature, args.regularization_coef,
            args.regularization_norm, args.log_interval, args.double_ent, args.double_rel, args.no_save_emb) == (
                19.9, True, 2.0, 1e-9, 2, 7, True, True, True)
    args = flags.parse("train", "-pw --loss_genre Hinge -m 3".split())
    assert args.pairwise and args.margin == 3
    assert flags.parse("partition", ["-k", "4"]).num_parts == 4
    assert flags.parse("dist_train", ["--ip_config", "x", "--num_client_proc", "16"]).num_client_proc == 16


def test_names_may_be_shortened():
    """As in DGL-KE's own scripts; Graphwire's own flags do not make DGL-KE's names ambiguous."""
    args = flags.parse("train", "--model TransE_l1 --regularization_coef=1e-7 --no_save --max_ste 5 --s x".split())
    assert (args.model_name, args.regularization_coef, args.no_save_emb, args.max_step, args.save_path) == (
        "TransE_l1", 1e-7, True, 5, "x")  # --save_path, and not --seed, --staleness
    assert flags.parse("eval", "--batch_size 16 --model_p x".split()).batch_size_eval == 16
    assert flags.parse("dist_train", "--ip x --ssh k --num_c 2 --model RotatE -de".split()).num_client_proc == 2
    assert flags.parse("partition", "--num 3".split()).num_parts == 3
    assert flags.parse("predict", "--form h_r_t --top 3".split()).topK == 3
    assert flags.parse("train", "--stale 2 --see 3".split()).staleness == 2


@pytest.mark.parametrize(("command", "words", "message"), [
    ("train", "--nonsense", "unrecognized"), ("train", "--eval 5", "ambiguous.*--eval_interval, --eval_percent"),
    ("train", "--model_name ConvE", "invalid choice"), ("train", "--max_step 0", "1 or more"),
    ("train", "-pw", "pairwise goes with"), ("train", "-pw -adv --loss_genre Hinge", "not both"),
    ("train", "-a 2", "-a goes with -adv"), ("train", "-m 2", "-m goes with"),
    ("train", "--neg_deg_sample_eval", "no_eval_filter"), ("train", "--eval_percent 0", "eval_percent"),
    ("train", "--eval_percent 1.5", "eval_percent"), ("train", "--neg_sample_size_eval 0", "neg_sample_size_eval"),
    ("train", "--rel_part", "num_proc"), ("train", "--mix_cpu_gpu", "needs --gpu"),
    ("train", "--gpu 99", "this machine"),
    ("train", "--gpu -1 0", "numbers of GPUs"), ("train", "-rc -1", "0 or more"),
    ("train", "--staleness -1", "0 or more"), ("train", "--seed -1", "--seed is 0 or more"),
    ("train", f"--seed {2**64 - 2}", "--seed is at most"), ("train", "--lr nan", "--lr is a finite number"),
    ("train", "--lr -1", "--lr is 0 or more"), ("train", "-g inf", "--gamma is a finite"),
    ("train", "--loss_genre Hinge -m nan", "--margin is a finite"), ("train", "-adv -a nan", "--adversarial_temp"),
    ("train", "-rc nan", "--regularization_coef is a finite"), ("train", f"--batch_size {2**40}", "--batch_size is at"),
    ("train", f"--max_step {2**70}", "--max_step is at most"), ("train", "--force_sync_interval -7", "-1 or more"),
    ("partition", f"-k {2**40}", "--num_parts is at most"), ("eval", "-g nan", "--gamma is a finite"),
    ("train", "--model_name RotatE", "-de"), ("train", "--model_name TransE -de", "both"),
    ("train", "--ip_config x", "unrecognized"), ("dist_train", "", "--ip_config"),
    ("dist_train", "--ip_config x --num_proc 2", "unrecognized"),
    ("dist_train", "--ip_config x --rel_part", "unrecognized"),
    ("dist_train", "--ip_config x --format udd_hrt --dataset d", "--format udd_hrt needs --data_files"),
    ("dist_train", "--ip_config x --ssh_port 65536", "--ssh_port is at most"),
    ("train", "--format udd_hrt --data_files e r t", "--format udd_hrt needs --dataset, a name for your own"),
    ("partition", "-k 2 --format raw_udd_hrt --data_files t", "raw_udd_hrt needs --dataset"),
    ("eval", "--format raw_udd_hrt --data_files t", "raw_udd_hrt needs --dataset"),
    ("train", "--delimiter ,", "--delimiter goes with"), ("partition", "-k 2 --delimiter ,", "--delimiter goes with"),
    ("partition", "-k 2 --method random --memory 1Gi", "--memory goes with"),
    ("predict", "--format h_r_t --entity_mfile e", "go with --raw_data"),
    ("predict", "--format h_r_t --rel_mfile r", "go with --raw_data"),
    ("eval", "--lr 1", "unrecognized"), ("partition", "", "-k"), ("predict", "", "--format"),
    ("emb_sim", "--format *", "--emb_file"), ("predict", "--format h_r_t --exec_mode pairwise", "invalid choice"),
    ("predict", "--format h_r_t --gpu 7", "this machine"),
    ("emb_sim", "--format * --emb_file x --topK 0", "1 or more")])
def test_flags_that_cannot_be_honoured_are_refused(command, words, message):
    with pytest.raises(flags.UsageError, match=message):
        flags.parse(command, words.split())


@pytest.mark.parametrize(("command", "words", "clients"), [
    ("train", "", "num_proc"), ("eval", "", "num_proc"), ("dist_train", "--ip_config x ", "num_client_proc")])
def test_every_gpu_has_a_client(monkeypatch, command, words, clients):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 3)
    for count, expected in ((1, 3), (2, 3), (6, 6)):
        args = flags.parse(command, f"{words}--gpu 0 1 2 --{clients} {count}".split())
        assert getattr(args, clients) == expected
    assert getattr(flags.parse(command, f"{words}--gpu 1".split()), clients) == 1
    with pytest.raises(flags.UsageError, match=f"--{clients} must be a multiple of the 3 GPUs of --gpu, not 4"):
        flags.parse(command, f"{words}--gpu 0 1 2 --{clients} 4".split())


@pytest.mark.parametrize("name", ["mine", "FB15k", "Freebase"])
def test_own_files_may_have_any_name(name):
    """DGL-KE accepts all data sets except FB15k, its default, from which it concludes that no name was given."""
    args = flags.parse("train", ["--format", "udd_hrt", "--data_files", "e", "r", "t", "--dataset", name])
    assert args.dataset == name
    short = flags.parse("train", ["--data_files", "e", "r", "t", f"--datas={name}", "--form", "udd_hrt"])
    assert vars(args) == vars(short)


def sentences(path):
    """All texts of a module with more than one word, without comments: its possible messages."""
    tree = ast.parse(path.read_text())
    documentation = {id(node.body[0].value) for node in ast.walk(tree)
                     if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
                     and isinstance(node.body[0], ast.Expr)}
    return [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
            and " " in node.value.strip() and id(node) not in documentation]


def test_what_the_launcher_advises_can_be_done_with_dist_train():
    """A user of dist_train sees these messages, and does not know launch.py's options."""
    others = {"--with_program",  # copy_files.py's, and its message says so
              "--workspace", "--part_config",  # dist_train creates them, from existing files
              "--server_name", "--key_file", "--extra_envs", "--keep",  # dist_train never passes them on
              "--dgl"}  # of commands without a Python in sight, and dist_train's has one
    found = {name for flag in flags.FLAGS if "dist_train" in flag.commands for name in flag.names}
    folder = launcher().parent / "gwdeploy"
    for module in ("agent", "cause", "clustershell", "failures", "ip_config", "job", "kept", "process", "reach"):
        for text in sentences(folder / f"{module}.py"):
            assert set(re.findall(r"(?<![\w-])--[a-z][a-z_-]+", text)) <= found | others, (module, text)


@pytest.mark.parametrize("command", flags.COMMANDS)
@pytest.mark.parametrize("package", ["gwke", "dglke"])
def test_every_script_is_its_command(monkeypatch, capsys, package, command):
    """The program that is installed under both names, started like the console script."""
    name = f"{package}_{command}"
    [entry] = [one for one in metadata.distribution("graphwire").entry_points if one.name == name]
    assert entry.group == "console_scripts"
    monkeypatch.setattr("sys.argv", [f"/usr/bin/{name}", "--help"])
    with pytest.raises(SystemExit) as ended:
        entry.load()()
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert said.startswith(f"usage: gwke_{command} ")
    for flag in flags.FLAGS:
        assert command not in flag.commands or flag.names[0] in said


def test_no_two_flags_of_a_command_share_a_name():
    for command in flags.COMMANDS:
        names = [name for flag in flags.FLAGS if command in flag.commands for name in flag.names]
        assert len(names) == len(set(names))


def test_the_documentation_has_the_table():
    text = Path(__file__).parents[2].joinpath("docs/KGE.md").read_text()
    between = text.split("prints this table -->\n")[1].split("<!-- /flags -->")[0]
    assert between == flags.table(), "python -m graphwire.kge.flags prints what docs/KGE.md should have"
