//! Targets as branches of a race.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]

use bakeoff_core::Thinking;
use bakeoff_suite::{TargetKind, race_targets, render_for_race};

fn load(suite: &str, names: &[&str]) -> Result<Vec<bakeoff_suite::Target>, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bakeoff.toml");
    std::fs::write(&path, suite).unwrap();
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let environment = |name: &str| (name == "PATH").then(|| std::env::var("PATH").unwrap());
    race_targets(&path, &names, &environment)
        .map_err(|error| error.to_string().replace(&format!("{}/", folder.path().display()), ""))
}

const SUITE: &str = r#"
[models.base]
provider = "sim"
model = "a"
temperature = 0.3
max_tokens = 99
thinking = "low"
extra = { seed = 7, top_k = 5 }

[target_defaults]
model = "base"

[[target]]
name = "brief"
system = "Be brief."
prompt = "In one sentence: {{ prompt }}"

[[target]]
name = "plain"

[[target]]
name = "careful"
prompt = "{{ prompt | trim }} Think first."
temperature = 1.0
thinking_tokens = 2048
extra = { seed = 8 }
tools = ["read_file"]
max_turns = 3

[[target]]
name = "broken"
model = "openai/gpt-4o-mini"
"#;

#[test]
fn targets_are_loaded_in_the_order_of_their_names_without_cases() {
    let targets = load(SUITE, &["careful", "brief", "plain"]).unwrap();
    let names: Vec<String> = targets.iter().map(|target| target.name.to_string()).collect();
    assert_eq!(names, ["careful", "brief", "plain"]);
    let texts: Vec<String> =
        targets.iter().map(|target| render_for_race(&target.prompt, "Why? ").unwrap()).collect();
    assert_eq!(texts, ["Why? Think first.", "In one sentence: Why? ", "Why? "]);
    let TargetKind::Model(careful) = &targets[0].kind else { panic!("not a model") };
    assert_eq!(careful.agent.as_ref().unwrap().max_turns, 3);
    let TargetKind::Model(brief) = &targets[1].kind else { panic!("not a model") };
    assert_eq!(render_for_race(brief.system.as_ref().unwrap(), "").unwrap(), "Be brief.");
}

#[test]
fn settings_of_a_model_apply_unless_the_target_sets_them() {
    let targets = load(SUITE, &["brief", "careful"]).unwrap();
    let sent = |index: usize| {
        let TargetKind::Model(model) = &targets[index].kind else { panic!("not a model") };
        model.model.settings().apply_to(model.request.clone())
    };
    let brief = sent(0);
    assert_eq!((brief.temperature, brief.max_tokens), (Some(0.3), Some(99)));
    assert_eq!(brief.thinking, Some(Thinking::Effort("low".to_owned())));
    let careful = sent(1);
    assert_eq!((careful.temperature, careful.max_tokens), (Some(1.0), Some(99)));
    assert_eq!(careful.thinking, Some(Thinking::Budget(2048)));
    assert_eq!((&careful.extra["seed"], &careful.extra["top_k"]), (&8.into(), &5.into()));
}

#[test]
fn unsuitable_targets_are_reported_with_their_position() {
    let suite = r#"
[[target]]
name = "cases"
model = "sim/a"
prompt = "{{ question }}"
[[target]]
name = "fixed"
model = "sim/a"
prompt = "Hi"
[[target]]
name = "program"
command = ["sh"]
prompt = "{{ prompt }}"
[[target]]
name = "chained"
[[target.chain]]
name = "one"
model = "sim/a"
prompt = "{{ prompt }}"
"#;
    let problems = load(suite, &["cases", "fixed", "program", "chained", "fixd"]).unwrap_err();
    assert_eq!(
        problems,
        "bakeoff.toml:1:1: there is no target `fixd`\n  hint: did you mean `fixed`?\n\
         bakeoff.toml:5:10: a race has no field `question`\n  hint: templates of a race can use {{ prompt }} only\n\
         bakeoff.toml:5:10: target `cases` does not use the prompt\n  hint: add {{ prompt }} to its template\n\
         bakeoff.toml:9:10: target `fixed` does not use the prompt\n  hint: add {{ prompt }} to its template\n\
         bakeoff.toml:10:1: target `program` is not a model\n  hint: a race sends its prompt to models; use `bakeoff run` for other targets\n\
         bakeoff.toml:14:1: target `chained` is not a model\n  hint: a race sends its prompt to models; use `bakeoff run` for other targets"
    );
    let contradictory = "[models.m]\nprovider = \"sim\"\nmodel = \"a\"\nthinking = \"low\"\nthinking_tokens = 1\n[[target]]\nname = \"t\"\nmodel = \"m\"\n";
    let problems = load(contradictory, &["t"]).unwrap_err();
    assert!(
        problems.contains("5:19: a model cannot have both `thinking` and `thinking_tokens`"),
        "{problems}"
    );
}

/// The key of `broken` is not needed.
#[test]
fn only_the_named_targets_need_keys() {
    assert_eq!(load(SUITE, &["plain"]).unwrap().len(), 1);
    assert!(load(SUITE, &["broken"]).unwrap_err().contains("OPENAI_API_KEY"));
}
