//! Roles and `[select]`: models of roles, combinations and problems.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]

use bakeoff_core::NanoDollars;
use bakeoff_suite::{LoadOptions, Suite, SuiteError, TargetKind};
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A folder with a suite file.
struct TestSuite {
    folder: tempfile::TempDir,
}

/// Options of `bakeoff select`.
const COMBINATIONS: LoadOptions<'static> = LoadOptions::new().must_run(true).combinations(true);

/// Options of `bakeoff run`.
const RUN: LoadOptions<'static> = LoadOptions::new().must_run(true);

impl TestSuite {
    fn new(suite: &str) -> TestSuite {
        let test = TestSuite { folder: tempfile::tempdir().unwrap() };
        std::fs::write(test.path(), suite).unwrap();
        test
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("bakeoff.toml")
    }

    /// Loads the suite in an environment that has only `PATH`.
    fn load(&self, options: LoadOptions<'_>) -> Result<Suite, SuiteError> {
        let environment = |name: &str| (name == "PATH").then(|| std::env::var("PATH").unwrap());
        Suite::load_with(&self.path(), options, &environment)
    }

    /// Returns the problems of the suite as text, with paths relative to its folder.
    fn problems(&self, options: LoadOptions<'_>) -> String {
        let error = self.load(options).expect_err("the suite has problems");
        error.to_string().replace(&format!("{}/", self.folder.path().display()), "")
    }
}

const END: &str = r#"
[cases]
inline = [{ id = "one", question = "2+2" }]
[[check]]
kind = "contains"
value = "2"
"#;

const STEPS: &str = r#"
[[target]]
name = "pipeline"
[[target.chain]]
role = "planner"
prompt = "Plan: {{ question }}"
[[target.chain]]
role = "solver"
prompt = "{{ planner }} {{ question }}"
"#;

const ROLES: &str = "[roles]\nplanner = \"sim/echo\"\nsolver = \"sim/echo\"\n";

/// Returns the problems of a suite that is loaded to be run.
fn problems(suite: &str) -> String {
    TestSuite::new(&format!("{suite}{END}")).problems(RUN)
}

/// Returns the problems of a search over the chain.
fn search_problems(select: &str) -> String {
    let suite = format!("{STEPS}{select}{END}");
    TestSuite::new(&suite).problems(COMBINATIONS)
}

/// Returns the problems of a chain with these steps.
fn chain_problems(steps: &str) -> String {
    problems(&format!("{ROLES}[[target]]\nname = \"pipeline\"\n{steps}"))
}

#[test]
fn invalid_chains_are_reported() {
    insta::assert_snapshot!(chain_problems("chain = []\n"), @r#"
    bakeoff.toml:6:9: the chain has no steps
      hint: add a [[target.chain]] with `role` and `prompt`
    "#);
    insta::assert_snapshot!(chain_problems("prompt = \"x\"\nmodel = \"sim/echo\"\ntemperature = 1\ntools = [\"read_file\"]\n[[target.chain]]\nrole = \"planner\"\nprompt = \"x\"\n"), @r#"
    bakeoff.toml:6:10: `prompt` is not allowed for chains
      hint: move `prompt` to the steps under [[target.chain]]
    bakeoff.toml:7:9: `model` is not allowed for chains
      hint: move `model` to the steps under [[target.chain]]
    bakeoff.toml:8:15: `temperature` is not allowed for chains
      hint: move `temperature` to the steps under [[target.chain]]
    bakeoff.toml:9:9: `tools` is for models; this target is a chain
    "#);
    insta::assert_snapshot!(chain_problems("[[target.chain]]\nprompt = \"x\"\n[[target.chain]]\nrole = \"solver\"\nmodel = \"sim/echo\"\nprompt = \"x\"\n[[target.chain]]\nmodel = \"sim/echo\"\nprompt = \"x\"\n"), @r#"
    bakeoff.toml:6:1: the step has neither `role` nor `model`
      hint: write `role = "solver"` and assign a model to it under [roles]
    bakeoff.toml:10:9: a step cannot have both `role` and `model`
      hint: assign a model to the role under [roles]
    bakeoff.toml:13:9: a step with a `model` needs a `name`
      hint: add `name = "checker"`; later steps refer to its output by this name
    "#);
    insta::assert_snapshot!(chain_problems("[[target.chain]]\nrole = \"planner\"\n[[target.chain]]\nrole = \"planner\"\nprompt = \"x\"\ntools = []\n"), @r#"
    bakeoff.toml:6:1: [[chain]] has no `prompt`
      hint: add `prompt`: prompt template with case fields and outputs of earlier steps
    bakeoff.toml:9:8: duplicate step name `planner`
      hint: add a unique `name` to one of the steps; steps may share a role
    bakeoff.toml:11:1: unknown key `tools` in [[chain]]
      hint: expected one of: `role`, `name`, `model`, `prompt`, `system`, `temperature`, `top_p`, `max_tokens`, `stop`, `thinking`, `thinking_tokens`, `extra`, `json`, `json_schema`
    "#);
    insta::assert_snapshot!(chain_problems("[[target.chain]]\nname = \"question\"\nmodel = \"sim/echo\"\nprompt = \"x\"\n[[target.chain]]\nname = \"code-check\"\nmodel = \"sim/echo\"\nprompt = \"x\"\n"), @r#"
    bakeoff.toml:7:8: step name `question` is also a field of the cases
      hint: give the step a different `name`
    bakeoff.toml:11:8: step name `code-check` cannot be used in templates
      hint: names consist of letters, digits and `_`; add `name = "code_check"` to the step
    "#);
}

#[test]
fn step_templates_can_use_earlier_outputs_only() {
    insta::assert_snapshot!(chain_problems("[[target.chain]]\nrole = \"planner\"\nsystem = \"{{ solver }}\"\nprompt = \"{{ planner }} {{ planer }}\"\n[[target.chain]]\nrole = \"solver\"\nprompt = \"{{ planer }}\"\n"), @r#"
    bakeoff.toml:8:10: step `planner` cannot use the output of the later step `solver`
      hint: a step can use case fields and outputs of earlier steps
    bakeoff.toml:9:10: step `planner` cannot use its own output
      hint: a step can use case fields and outputs of earlier steps
    bakeoff.toml:12:10: no case has the field `planer`
      hint: did you mean `planner`?
    "#);
    // Other targets cannot use outputs of steps.
    insta::assert_snapshot!(problems(&format!("{ROLES}{STEPS}[[target]]\nname = \"alone\"\nmodel = \"sim/echo\"\nprompt = \"{{{{ planner }}}}\"\n")), @r#"
    bakeoff.toml:16:10: no case has the field `planner`
      hint: expected one of: `id`, `question`
    "#);
}

#[test]
fn roles_without_a_model_are_reported() {
    insta::assert_snapshot!(problems(STEPS), @r#"
    bakeoff.toml:5:8: no model assigned to role `planner`
      hint: write `planner = "provider/model"` under [roles]
    bakeoff.toml:8:8: no model assigned to role `solver`
      hint: write `solver = "provider/model"` under [roles]
    "#);
    insta::assert_snapshot!(problems(&format!("[roles]\nplaner = \"sim/echo\"\nsolver = \"large\"\n{STEPS}")), @r#"
    bakeoff.toml:3:10: there is no model `large`
      hint: use a name under [models], or provider/model such as `openai/gpt-4o-mini`
    bakeoff.toml:8:8: no model assigned to role `planner`
      hint: [roles] has `planer`; the names must match
    "#);
    let select = "[select.roles]\nplanner = [\"sim/echo\"]\n";
    insta::assert_snapshot!(problems(&format!("[roles]\nsolver = \"sim/echo\"\n{STEPS}{select}")), @r#"
    bakeoff.toml:7:8: no model assigned to role `planner`
      hint: write `planner = "provider/model"` under [roles], or let `bakeoff select` choose one
    "#);
    let others = "[[target]]\nname = \"one\"\nmodel = \"role/solver\"\nprompt = \"x\"\n[[target]]\nname = \"loop\"\nmodel = \"role/worker\"\ntools = [\"read_file\"]\nprompt = \"x\"\n[[target]]\nname = \"program\"\ncommand = [\"true\"]\nroles = [\"a-b\", \"a_b\", \"c\", \"c\"]\nprompt = \"x\"\n";
    insta::assert_snapshot!(problems(&format!("[roles]\n\"a-b\" = \"sim/echo\"\n{others}")), @r#"
    bakeoff.toml:5:9: no model assigned to role `solver`
      hint: write `solver = "provider/model"` under [roles]
    bakeoff.toml:9:9: no model assigned to role `worker`
      hint: write `worker = "provider/model"` under [roles]
    bakeoff.toml:15:17: roles `a-b` and `a_b` share the environment variable `BAKEOFF_MODEL_A_B`
      hint: rename one of them
    bakeoff.toml:15:24: no model assigned to role `c`
      hint: write `c = "provider/model"` under [roles]
    bakeoff.toml:15:29: duplicate role `c`
    "#);
    // Targets that are not selected are not validated.
    let suite =
        format!("{STEPS}[[target]]\nname = \"other\"\nmodel = \"sim/echo\"\nprompt = \"x\"\n{END}");
    let only = ["other".to_owned()];
    assert!(TestSuite::new(&suite).load(RUN.targets(&only)).is_ok());
}

#[test]
fn invalid_searches_are_reported() {
    insta::assert_snapshot!(search_problems(""), @r#"
    bakeoff.toml: the suite has no [select] table
      hint: add [select.roles] with candidates for each role, such as `solver = ["small", "openai/gpt-4o-mini"]`
    "#);
    insta::assert_snapshot!(search_problems("[select]\nmethod = \"arm_eliminaton\"\n"), @r#"
    bakeoff.toml:5:8: no model assigned to role `planner`
      hint: write `planner = "provider/model"` under [roles], or its candidates under [select.roles]
    bakeoff.toml:8:8: no model assigned to role `solver`
      hint: write `solver = "provider/model"` under [roles], or its candidates under [select.roles]
    bakeoff.toml:10:1: [select] has no `roles`
      hint: add `roles`: candidates of each role, such as `solver = ["small", "large"]`; other roles keep their model of [roles]
    bakeoff.toml:11:10: `method` cannot be "arm_eliminaton"
      hint: did you mean `arm_elimination`?
    "#);
    insta::assert_snapshot!(search_problems("[select.roles]\nplanner = [\"small\", \"sim/echo\", \"sim/echo\", \"openal/x\", \"openai/gpt-4o\"]\nsolver = []\ncritic = [\"sim/echo\"]\n[select.describe]\nplaner = \"plans\"\n[models.smal]\nprovider = \"sim\"\nmodel = \"echo\"\n"), @r#"
    bakeoff.toml:8:8: no model assigned to role `solver`
      hint: write `solver = "provider/model"` under [roles], or its candidates under [select.roles]
    bakeoff.toml:11:12: there is no model `small`
      hint: did you mean `smal`?
    bakeoff.toml:11:33: duplicate candidate `sim/echo` of role `planner`
    bakeoff.toml:11:45: unknown provider `openal`
      hint: did you mean `openai`?
    bakeoff.toml:11:57: environment variable OPENAI_API_KEY is not set
      hint: `export OPENAI_API_KEY=…`, set it in the file `.env` next to the suite, or set `api_key_env` under [models]; `sim/…` models need no key
    bakeoff.toml:12:1: role `solver` has no candidates
      hint: add models, or remove the role and assign a model under [roles]
    bakeoff.toml:13:1: the target `pipeline` has no role `critic`
      hint: expected one of: `planner`, `solver`
    bakeoff.toml:15:1: the target `pipeline` has no role `planer`
      hint: did you mean `planner`?
    "#);
    insta::assert_snapshot!(search_problems("[select.roles]\nplanner = [\"sim/echo\"]\n"), @r#"
    bakeoff.toml:8:8: no model assigned to role `solver`
      hint: write `solver = "provider/model"` under [roles], or its candidates under [select.roles]
    "#);
    insta::assert_snapshot!(search_problems("[select]\ntarget = \"pipelin\"\nmethod = \"threshold_se\"\n[select.roles]\nplanner = [\"sim/echo\"]\n"), @r#"
    bakeoff.toml:11:10: there is no target `pipelin`
      hint: did you mean `pipeline`?
    bakeoff.toml:12:10: `threshold_se` needs `threshold`
      hint: add the sufficient mean score: `threshold = 0.75`
    "#);
    insta::assert_snapshot!(search_problems("[select]\nmethod = \"lm_proposal\"\ncost_weight = 0.1\ncheapest_within = 0.02\nmax_task_usd = 0.01\nconfidence = 1\nroles = { planner = [\"sim/echo\"], solver = \"sim/echo\" }\n"), @r#"
    bakeoff.toml:8:8: no model assigned to role `solver`
      hint: write `solver = "provider/model"` under [roles], or its candidates under [select.roles]
    bakeoff.toml:11:10: `lm_proposal` needs `proposer`
      hint: add the proposing model: `proposer = "openai/gpt-4o"`
    bakeoff.toml:13:19: `cost_weight` and `cheapest_within` cannot be combined
      hint: use only one of the weights, `cheapest_within` and `max_task_usd`
    bakeoff.toml:15:14: `confidence` must be a number from 0.5 to 0.9999, not 1
      hint: `confidence`: for `auto` and `strict`: confidence of the choice [default: 0.95]
    bakeoff.toml:16:44: `solver` must be a list of strings, not the string "sim/echo"
      hint: `roles`: candidates of each role, such as `solver = ["small", "large"]`; other roles keep their model of [roles]
    "#);
    let many: Vec<String> = (0..400).map(|number| format!("\"sim/m{number}\"")).collect();
    let many = many.join(", ");
    insta::assert_snapshot!(search_problems(&format!("[select.roles]\nplanner = [{many}]\nsolver = [{many}]\n")), @r#"
    bakeoff.toml:10:1: 160000 combinations; the maximum is 100000
      hint: remove candidates, or assign fixed models under [roles]
    "#);
    insta::assert_snapshot!(search_problems("[select]\nproposer = \"small\"\n[select.roles]\n"), @r#"
    bakeoff.toml:5:8: no model assigned to role `planner`
      hint: write `planner = "provider/model"` under [roles], or its candidates under [select.roles]
    bakeoff.toml:8:8: no model assigned to role `solver`
      hint: write `solver = "provider/model"` under [roles], or its candidates under [select.roles]
    bakeoff.toml:11:12: there is no model `small`
      hint: use a name under [models], or provider/model such as `openai/gpt-4o-mini`
    bakeoff.toml:12:1: no role has candidates
      hint: write `planner = ["sim/echo", "openai/gpt-4o-mini"]`
    "#);
    let two = "[[target]]\nname = \"one\"\nmodel = \"role/solver\"\nprompt = \"x\"\n[select.roles]\nsolver = [\"sim/echo\"]\n";
    insta::assert_snapshot!(search_problems(two), @r#"
    bakeoff.toml:5:8: no model assigned to role `planner`
      hint: write `planner = "provider/model"` under [roles], or its candidates under [select.roles]
    bakeoff.toml:14:2: several targets have roles
      hint: add `target = …`, one of `pipeline`, `one`
    "#);
    let none = "[[target]]\nname = \"one\"\nmodel = \"sim/echo\"\nprompt = \"x\"\n";
    insta::assert_snapshot!(TestSuite::new(&format!("{none}{END}")).problems(COMBINATIONS), @r#"
    bakeoff.toml: the suite has no [select] table
      hint: give a target a role, such as `model = "role/solver"`, and add [select.roles] with its candidates: `solver = ["small", "openai/gpt-4o-mini"]`
    "#);
    insta::assert_snapshot!(TestSuite::new(&format!("{none}[select.roles]\nsolver = [\"sim/echo\"]\n{END}")).problems(RUN), @r#"
    bakeoff.toml:5:2: no target has a role
      hint: give a target a role with `model = "role/solver"`, `role` in a chain step, or `roles`
    "#);
    insta::assert_snapshot!(TestSuite::new(&format!("{none}[select]\ntarget = \"one\"\n[select.roles]\nsolver = [\"sim/echo\"]\n{END}")).problems(RUN), @r#"
    bakeoff.toml:6:10: the target `one` has no roles
      hint: give a target a role with `model = "role/solver"`, `role` in a chain step, or `roles`
    "#);
}

#[test]
fn api_keys_of_candidates_are_needed_only_for_the_search() {
    let select = "[select]\nproposer = \"groq/x\"\n[select.roles]\nplanner = [\"openai/gpt-4o\"]\nsolver = [\"sim/echo\"]\n";
    assert!(TestSuite::new(&format!("{ROLES}{STEPS}{select}{END}")).load(RUN).is_ok());
    insta::assert_snapshot!(search_problems(select), @r#"
    bakeoff.toml:11:12: environment variable GROQ_API_KEY is not set
      hint: `export GROQ_API_KEY=…`, set it in the file `.env` next to the suite, or set `api_key_env` under [models]; `sim/…` models need no key
    bakeoff.toml:13:12: environment variable OPENAI_API_KEY is not set
      hint: `export OPENAI_API_KEY=…`, set it in the file `.env` next to the suite, or set `api_key_env` under [models]; `sim/…` models need no key
    "#);
}

const FULL_SELECT: &str = r#"
[roles]
critic = "sim/echo"

[select]
method = "arm_elimination"
confidence = 0.9
epsilon = 0.02
cost_weight = 0.5
latency_weight = 0.25
max_cost_usd = 5.0
max_cells = 500
deadline = 600
fraction = 0.25
threshold = 0.5
width = 1.5
first = 4
growth = 3
curiosity = 0.5
batch = 2
iterations = 10
restarts = 1
patience = 5
proposer = "small"
[select.roles]
solver = ["small", "sim/echo"]
planner = ["sim/b", "sim/a", "small"]
[select.describe]
planner = "breaks the task into steps"
[sim.small]
default = "2"

[[target]]
name = "other"
model = "sim/echo"
prompt = "x"
"#;

const CRITIC: &str = "[[target.chain]]\nrole = \"critic\"\nprompt = \"{{ solver }}\"\n";

fn combinations() -> Suite {
    let suite = format!(
        "{STEPS}{CRITIC}{FULL_SELECT}{}",
        END.replace("[[check]]", "[[check]]\ntargets = [\"pipeline\"]")
    );
    TestSuite::new(&suite).load(COMBINATIONS).unwrap()
}

#[test]
fn select_plan_has_all_values_of_the_file() {
    let suite = combinations();
    let plan = suite.select.as_ref().unwrap();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    assert_eq!((plan.target.as_str(), plan.method.as_str()), ("pipeline", "arm_elimination"));
    let roles = [
        ("solver".to_owned(), words(&["small", "sim/echo"])),
        ("planner".to_owned(), words(&["sim/b", "sim/a", "small"])),
    ];
    assert_eq!(plan.roles, roles);
    assert_eq!(plan.describe["planner"], "breaks the task into steps");
    assert_eq!(plan.proposer.as_ref().unwrap().0, "small");
    assert_eq!((plan.confidence, plan.epsilon), (Some(0.9), Some(0.02)));
    let objective = plan.objective;
    assert_eq!((objective.cost_weight, objective.latency_weight), (Some(0.5), Some(0.25)));
    assert_eq!((objective.cheapest_within, objective.max_task_usd), (None, None));
    let budget = plan.budget;
    assert_eq!(budget.cost, Some(NanoDollars(5_000_000_000)));
    assert_eq!((budget.cells, budget.time), (Some(500), Some(Duration::from_secs(600))));
    let options = &plan.options;
    assert_eq!(
        [options.fraction, options.threshold, options.width, options.growth, options.curiosity],
        [0.25, 0.5, 1.5, 3.0, 0.5].map(Some)
    );
    assert_eq!(
        [options.first, options.batch, options.iterations, options.restarts, options.patience],
        [4, 2, 10, 1, 5].map(Some)
    );
}

#[test]
fn combinations_are_ordered_and_share_steps() {
    let suite = combinations();
    let names: Vec<&str> = suite.targets.iter().map(|target| target.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "pipeline[solver=small,planner=sim/b]",
            "pipeline[solver=small,planner=sim/a]",
            "pipeline[solver=small,planner=small]",
            "pipeline[solver=sim/echo,planner=sim/b]",
            "pipeline[solver=sim/echo,planner=sim/a]",
            "pipeline[solver=sim/echo,planner=small]",
        ]
    );
    let mut steps = HashSet::new();
    for target in &suite.targets {
        assert_eq!(target.sample, Some("pipeline".into()));
        assert!(suite.checks[0].applies_to(target.base()));
        let TargetKind::Chain(chain) = &target.kind else { panic!("{:?}", target.kind) };
        steps.extend(chain.steps.iter().map(Arc::as_ptr));
    }
    // Two solvers, three planners and the critic.
    assert_eq!(steps.len(), 6);
    let TargetKind::Chain(chain) = &suite.targets[4].kind else { panic!("not a chain") };
    let labels: Vec<&str> = chain.steps.iter().map(|step| step.model.label.as_str()).collect();
    assert_eq!(labels, ["sim/a", "sim/echo", "sim/echo"]);
    let roles = [("planner", "sim/a"), ("solver", "sim/echo"), ("critic", "sim/echo")];
    assert_eq!(
        suite.targets[4].roles,
        roles.map(|(role, model)| (role.to_owned(), model.to_owned()))
    );
}

#[test]
fn models_with_and_without_tools_and_agents_have_combinations() {
    let load = |target: &str, candidates: &str| {
        let test = TestSuite::new(&format!(
            "[[target]]\nname = \"t\"\nprompt = \"x\"\n{target}\n[select.roles]\n{candidates}\n{END}"
        ));
        let claude = test.folder.path().join("claude");
        std::fs::write(&claude, "#!/bin/sh\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&claude, mode).unwrap();
        let folder = claude.parent().unwrap().display().to_string();
        let path = format!("{folder}:{}", std::env::var("PATH").unwrap());
        let environment = |name: &str| (name == "PATH").then(|| path.clone());
        let path = test.path();
        Suite::load_with(&path, COMBINATIONS, &environment).unwrap().targets
    };
    let two = "solver = [\"sim/a\", \"sim/b\"]";
    for tools in ["", "tools = [\"read_file\"]"] {
        let targets = load(&format!("model = \"role/solver\"\n{tools}"), two);
        let label = |target: &bakeoff_suite::Target| match &target.kind {
            TargetKind::Model(model) => (model.label.clone(), model.agent.is_some()),
            other => panic!("{other:?}"),
        };
        let labels: Vec<_> = targets.iter().map(label).collect();
        let expected = ["sim/a", "sim/b"].map(|label| (label.to_owned(), !tools.is_empty()));
        assert_eq!(labels, expected);
    }
    // Agents have their own model names.
    let targets = load(
        "agent = \"claude\"\nmodel = \"role/coder\"\nargs = [\"--x\"]",
        "coder = [\"opus\", \"haiku\"]",
    );
    for (target, model) in targets.iter().zip(["opus", "haiku"]) {
        let TargetKind::Program(program) = &target.kind else { panic!("not a program") };
        let words: Vec<_> = program.command.iter().map(|word| word.to_str().unwrap()).collect();
        assert!(words.contains(&model) && words.contains(&"--x"), "{words:?}");
        assert_eq!(words.iter().filter(|word| ["opus", "haiku"].contains(word)).count(), 1);
    }
    assert_eq!(targets.len(), 2);
}
