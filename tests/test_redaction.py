"""What counts as a secret, in names, values and configs; and what must stay readable."""

from __future__ import annotations

from pathlib import Path

import pytest

from gymnast.config.load import from_saved, resolve
from gymnast.errors import ConfigError, UsageError
from gymnast.redaction import HIDDEN, expand, is_reference, is_secret_name, redact, redact_tree, refuse_secrets

TOKENS = {
    "Hugging Face": "hf_" + "aB3" * 11,
    "GitHub": "ghp_" + "x1Y" * 12,
    "GitHub fine-grained": "github_pat_" + "A1b_" * 10,
    "GitLab": "glpat-" + "abcd1234" * 3,
    "OpenAI": "sk-proj-" + "a1B2" * 8,
    "Slack": "xoxb-1234567890-abcdef",
    "AWS": "AKIAIOSFODNN7EXAMPLE",
    "JWT": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-DEF_123",
    "PEM": "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----",
}


@pytest.mark.parametrize(
    "name",
    ["token", "HF_TOKEN", "auth_token", "authToken", "api_key", "API-KEY", "apiKey", "WANDB_API_KEY", "password",
     "PGPASSWORD", "client_secret", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "Authorization", "credentials"],
)  # fmt: skip
def test_secret_names(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    ["max_tokens", "tokenizer", "TOKENIZERS_PARALLELISM", "PWD", "key", "keys", "secret_door", "GPG_KEY", "n_envs",
     "token_count", "passwords_seen", "author", "SSH_AUTH_SOCK"],
)  # fmt: skip
def test_other_names(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS)
def test_known_tokens_are_hidden_anywhere(token: str) -> None:
    """And only they: the words around them stay."""
    assert redact(f"before {token} after") == f"before {HIDDEN} after"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("clone https://joe:s3cret@host.org/x.git", "clone https://joe:***@host.org/x.git"),
        ("made with {'token': 'abc', 'size': 4}", "made with {'token': ***, 'size': 4}"),
        ('{"api_key": "a b c", "n": 1}', '{"api_key": ***, "n": 1}'),
        ("env.kwargs.token=abc algo.gamma=0.9", "env.kwargs.token=*** algo.gamma=0.9"),
        ("Authorization: Bearer abc123 and more", "Authorization: Bearer *** and more"),
        ("wandb: key " + "a1" * 20, "wandb: key ***"),
        ("env.kwargs.token=$MY_TOKEN stays", "env.kwargs.token=$MY_TOKEN stays"),
        ("{'token': '$MY_TOKEN'}", "{'token': '$MY_TOKEN'}"),
    ],
)
def test_text(text: str, clean: str) -> None:
    assert redact(text) == clean
    assert redact(clean) == clean


@pytest.mark.parametrize(
    "text",
    [
        "commit 0123456789abcdef0123456789abcdef01234567",
        "sha256 " + "ab" * 32,
        "solved (eval/return_mean ≥ 475) after 30,208 env steps",
        "max_tokens: 12, tokenizer=bpe",
        "see https://gymnasium.farama.org/environments/ and a@b.org",
        "task-sk-learn, ask-me-anything-at-any-time",
        "",
    ],
)
def test_text_that_stays(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    "piece", ["a_", "a.", "token", "token=", "https://a:", "-----BEGIN PRIVATE KEY-----", "eyJ", "wandb", "x"]
)
def test_a_long_line_takes_no_quadratic_time(piece: str) -> None:
    """A megabyte of what almost is a secret; a quadratic pattern would work for hours."""
    redact(piece * (1_000_000 // len(piece)))


def test_values_of_secret_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read at the moment, longest first; short words are left alone."""
    monkeypatch.setenv("FIRST_TOKEN", "canary-value")
    monkeypatch.setenv("SECOND_PASSWORD", "canary-value-longer")
    monkeypatch.setenv("THIRD_SECRET", "no")
    monkeypatch.setenv("PLAIN_SETTING", "plain-value-to-see")
    assert (
        redact("x canary-value-longer y canary-value z no plain-value-to-see") == "x *** y *** z no plain-value-to-see"
    )


def test_trees() -> None:
    """By name at any depth; references and numbers stay."""
    tree = {"env": {"kwargs": {"token": "abc", "ref": "$NAME", "many_token": ["a", "$B"], "size": 4}}, "token": None}
    assert redact_tree(tree) == {
        "env": {"kwargs": {"token": HIDDEN, "ref": "$NAME", "many_token": [HIDDEN, "$B"], "size": 4}},
        "token": None,
    }


@pytest.mark.parametrize(
    "setting", ["env.kwargs.token=abc", f"env.kwargs.x={TOKENS['Hugging Face']}", "env.kwargs.a.b.api_key=z"]
)
def test_a_config_with_a_secret_in_clear_is_refused(setting: str) -> None:
    """Before anything is saved; the sentence has the key and the way out, and not the value."""
    key, _, value = setting.partition("=")
    with pytest.raises(ConfigError, match="is a secret in plain text") as caught:
        resolve("CartPole-v1:ppo", [setting])
    assert key in str(caught.value) and value not in str(caught.value).replace(key, "") and "$MY_" in str(caught.value)
    reference = resolve("CartPole-v1:ppo", [f"{key}=$MY_VALUE"]).config
    saved = reference.model_dump(mode="json")
    assert "$MY_VALUE" in str(saved)
    assert from_saved(saved).config == reference


def test_a_hidden_secret_must_be_given_again() -> None:
    """As in a run that was imported: the sentence says what is missing; a reference on resume heals it."""
    saved = resolve("CartPole-v1:ppo", ["env.kwargs.token=$NAME"]).config.model_dump(mode="json")
    saved["env"]["kwargs"]["token"] = HIDDEN
    with pytest.raises(
        ConfigError, match=r"'env.kwargs.token' was not saved with the run.*'env.kwargs.token=\$MY_TOKEN'"
    ):
        from_saved(saved)
    assert from_saved(saved, ["env.kwargs.token=$OTHER"]).config.env.kwargs == {"token": "$OTHER"}


def test_the_file_and_line_of_a_secret(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("id: CartPole-v1\nvariants:\n  my_ppo:\n    env: {kwargs: {password: abc}}\n")
    with pytest.raises(ConfigError, match=r"mine\.yaml:4: 'env.kwargs.password' is a secret"):
        resolve(f"{path}:my_ppo", ["train.env_steps=64"])


def test_texts_of_the_spec_are_no_secrets() -> None:
    refuse_secrets({"spec": {"password": "what the agent must say"}, "name": "a:b", "env": {"kwargs": {"token": ""}}})


def test_references(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole values only; the value that was read is hidden from then on, whatever its variable is called."""
    monkeypatch.setenv("ORDINARY_NAME", "canary-by-reference")
    assert redact("canary-by-reference") == "canary-by-reference"
    data = {"a": "$ORDINARY_NAME", "b": ["${ORDINARY_NAME}"], "c": "x$ORDINARY_NAME", "d": 5, "e": "$"}
    assert expand(data, "env.kwargs") == {**data, "a": "canary-by-reference", "b": ["canary-by-reference"]}
    assert redact("canary-by-reference") == HIDDEN
    assert not is_reference("$5 a day") and not is_reference("${a b}") and not is_reference(5)
    with pytest.raises(
        UsageError, match=r"'env.kwargs.x.y' is read from the environment variable NOT_SET_HERE, which is not"
    ):
        expand({"x": {"y": "$NOT_SET_HERE"}}, "env.kwargs")
