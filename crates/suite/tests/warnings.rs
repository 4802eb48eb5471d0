//! Warnings of a suite about settings that are not sent.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests may panic")]

use bakeoff_suite::{LoadOptions, Suite};

const REST: &str = "\n[[cases.inline]]\nid = \"a\"\n\n[[check]]\nkind = \"is_json\"\n";

fn warnings(suite: &str, combinations: bool) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bakeoff.toml");
    std::fs::write(&path, format!("{suite}{REST}")).unwrap();
    let options = LoadOptions::new().combinations(combinations);
    let suite = Suite::load_with(&path, options, &|_| Some("key-of-the-test".to_owned())).unwrap();
    assert!(suite.warnings.iter().all(|(code, _)| *code == "EVAL_SETTING_IGNORED"));
    suite.warnings.into_iter().map(|(_, message)| message).collect()
}

/// Settings of a target, in all kinds.
const SETTINGS: &str = "temperature = 0\ntop_p = 0.5\nmax_tokens = 9\nstop = [\"END\"]\nthinking = \"low\"\njson = true\nextra = { seed = 7 }\n";

fn target(model: &str) -> String {
    format!("[[target]]\nname = \"t\"\nmodel = \"{model}\"\nprompt = \"p\"\n{SETTINGS}")
}

#[test]
fn settings_that_the_format_lacks_are_reported_with_a_remedy() {
    assert_eq!(
        warnings(&target("openai-responses/gpt-5"), false),
        [
            "target `t` (openai-responses/gpt-5): `stop` is not supported by OpenAI Responses and is ignored; \
             use the provider `openai`, or remove `stop`"
        ]
    );
    assert_eq!(
        warnings(&target("anthropic/claude-haiku-4-5"), false),
        [
            "target `t` (anthropic/claude-haiku-4-5): `json` is not supported by Anthropic Messages and is \
             ignored; use `json_schema`, or ask for JSON in the prompt"
        ]
    );
    for model in ["openai/gpt-5", "groq/m", "gemini/gemini-3-flash", "sim/echo"] {
        assert!(warnings(&target(model), false).is_empty(), "{model}");
    }
}

#[test]
fn steps_and_candidates_are_reported_once_per_model() {
    let chain = "[[target]]\nname = \"t\"\n\
        [[target.chain]]\nrole = \"planner\"\nprompt = \"p\"\nstop = [\"END\"]\n\
        [[target.chain]]\nrole = \"solver\"\nprompt = \"p\"\n\
        [select.roles]\nplanner = [\"sim/echo\", \"openai-responses/a\", \"openai-responses/b\"]\n\
        solver = [\"sim/echo\", \"openai-responses/a\"]\n";
    let message = |model: &str| {
        format!(
            "step `planner` of target `t` (openai-responses/{model}): `stop` is not supported by OpenAI \
             Responses and is ignored; use the provider `openai`, or remove `stop`"
        )
    };
    assert_eq!(warnings(chain, true), [message("a"), message("b")]);
    assert!(warnings(chain, false).is_empty(), "the first candidate is simulated");
}
