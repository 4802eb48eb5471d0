//! FastSkill projects: `[tool.fastskill.eval]` of a `skill-project.toml`, its prompts and its checks,
//! as they are.
//!
//! Agents on the command line become targets, prompts become cases with a copy of the project as
//! their workspace, and checks become checks of each case, because what is expected of a case
//! depends on its `should_trigger`.

mod checks;
mod prompts;

use super::checks::CheckReader;
use super::programs::{self, INSTALL, ProgramTarget, UNAVAILABLE};
use super::settings::{Settings, settings};
use super::spec::{MAX_TRIALS, Section, Shape, coded, optional, required};
use super::suite::{self, LoadOptions, Suite, folder_name};
use super::targets::{Target, TargetKind};
use super::tree::{self, Node};
use super::workspaces;
use crate::case::CaseSource;
use crate::problem::{Problem, Problems, SuiteError, suggest};
use crate::template::Template;
use bakeoff_agent::CodingAgent;
use bakeoff_llm::Environment;
use bakeoff_stats::Threshold;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use toml::de::DeTable;

/// The file's name.
pub(super) const FILE_NAME: &str = "skill-project.toml";

/// Printed when there is no `[tool.fastskill.eval]`.
pub(super) const CONFIG_MISSING: &str = "EVAL_CONFIG_MISSING";

const INVALID_CSV: &str = "EVAL_INVALID_CSV";

/// How long an agent may take.
const TIMEOUT: u64 = 900;

const EVAL: Section = Section::new(
    "How the skill is evaluated.",
    &[
        required("prompts", Shape::Text, "A CSV file with the prompts."),
        optional("checks", Shape::Text, "A TOML file with the checks."),
        optional(
            "timeout_seconds",
            Shape::Integer { least: 1, most: 1_000_000_000 },
            "How long an agent may take; 900 when absent.",
        ),
        coded(
            "EVAL_INVALID_TRIALS_CONFIG",
            optional(
                "trials_per_case",
                Shape::Integer { least: 1, most: MAX_TRIALS as i64 },
                "Attempts at each case; 1 when absent.",
            ),
        ),
        optional(
            "parallel",
            Shape::Integer { least: 0, most: u32::MAX as i64 },
            "Most trials at once; the number of cores when absent.",
        ),
        coded(
            "EVAL_INVALID_THRESHOLD",
            optional(
                "pass_threshold",
                Shape::Number { least: 0.0, most: 1.0 },
                "Share of a case's trials that must pass; 1 when absent.",
            ),
        ),
        optional(
            "fail_on_missing_agent",
            Shape::Boolean,
            "Whether an agent that is not installed is an error; true when absent.",
        ),
    ],
);

/// Whether a file is a FastSkill project: by its name, or by what is in it.
pub(super) fn is_project(path: &Path, table: &DeTable<'_>) -> bool {
    let has_table = Node::new(table, 0..0).table("tool").and_then(|tool| tool.table("fastskill"));
    path.file_name().is_some_and(|name| name == FILE_NAME) || has_table.is_some()
}

/// Reads a project. `None` when there are problems.
pub(super) fn load(
    path: &Path,
    text: &str,
    table: &DeTable<'_>,
    wanted: LoadOptions<'_>,
    environment: Environment<'_>,
) -> Result<Suite, SuiteError> {
    let mut problems = Problems::new(path, text);
    let root = Node::new(table, 0..0);
    let eval =
        ["tool", "fastskill", "eval"].iter().try_fold(root.clone(), |node, name| node.table(name));
    let Some(eval) = eval else {
        let problem = problems.at(0..0, "there is no [tool.fastskill.eval]");
        problem.code = Some(CONFIG_MISSING);
        problem.hint = Some("add the table with `prompts = \"prompts.csv\"`".to_owned());
        return Err(problems.into());
    };
    let project = Project { path, text, root, eval, wanted, environment };
    match project.suite(&mut problems) {
        Some(suite) if problems.is_empty() => Ok(suite),
        _ => Err(problems.into()),
    }
}

struct Project<'a, 't> {
    path: &'a Path,
    text: &'a str,
    root: Node<'a, 't>,
    eval: Node<'a, 't>,
    wanted: LoadOptions<'a>,
    environment: Environment<'a>,
}

impl Project<'_, '_> {
    fn suite(&self, problems: &mut Problems<'_>) -> Option<Suite> {
        let mut warnings = self.check_form(problems);
        let settings = self.settings(problems);
        let folder = self.path.parent().unwrap_or(Path::new(""));
        let checks = self.eval.text("checks").map(|file| checks::read(folder, file, problems));
        let checks = checks.unwrap_or_default();
        let targets = self.targets(folder, &mut warnings, problems)?;
        let rows = prompts::read(folder, self.eval.text("prompts")?, &checks, problems)?;
        let cases = CaseSource::inline(&rows.path, rows.rows);
        let mut survey = cases.survey();
        let coded = |problem: Problem| Problem { code: Some(INVALID_CSV), ..problem };
        problems.extend(survey.problems.drain(..).map(coded));
        let mut misplaced = Problems::new(self.path, self.text);
        workspaces::check(&cases, &survey.fields, &targets, folder, &mut misplaced);
        problems.extend(misplaced.into_sorted().into_iter().map(coded));
        let digest = blake3::Hasher::new()
            .update(self.text.as_bytes())
            .update(survey.digest.as_bytes())
            .finalize()
            .to_hex()
            .to_string();
        let target_names: Vec<String> = self.agents();
        Some(Suite {
            name: self.name(),
            path: self.path.to_owned(),
            settings,
            parts: targets.iter().map(part).collect(),
            check_reader: CheckReader::of_targets(folder, target_names.clone()),
            targets,
            select: None,
            unassigned_roles: Vec::new(),
            target_names,
            cases,
            survey,
            checks: Vec::new(),
            judges: BTreeMap::new(),
            simulated: BTreeMap::new(),
            digest,
            warnings,
            project: Some(suite::Project {
                root: folder.to_owned(),
                checks: self.eval.text("checks").map(|file| folder.join(file.value)),
            }),
        })
    }

    fn name(&self) -> String {
        let metadata = self.root.table("metadata");
        let text = |key| Some(metadata.as_ref()?.text(key)?.value.trim().to_owned());
        let name = text("name").or_else(|| text("id")).filter(|name| !name.is_empty());
        name.unwrap_or_else(|| folder_name(self.path))
    }

    /// Finds values that cannot be. Keys that FastSkill does not know it does not mind.
    fn check_form(&self, problems: &mut Problems<'_>) -> Vec<(&'static str, String)> {
        let mut all = Problems::new(self.path, self.text);
        let span = self.eval.span.clone();
        let name = "[tool.fastskill.eval]";
        tree::validate(self.eval.entries(), span, &EVAL, name, &mut all);
        let (unknown, wrong): (Vec<Problem>, Vec<Problem>) = all
            .into_sorted()
            .into_iter()
            .partition(|problem| problem.message.starts_with("unknown key"));
        problems.extend(wrong);
        let warning = |problem: Problem| {
            let hint = problem.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
            ("EVAL_CONFIG_UNKNOWN", format!("{} is not used{hint}", problem.message))
        };
        unknown.into_iter().map(warning).collect()
    }

    fn settings(&self, problems: &mut Problems<'_>) -> Settings {
        let count = |name| self.eval.integer(name).and_then(|number| u32::try_from(number).ok());
        let seconds =
            self.eval.integer("timeout_seconds").and_then(|seconds| u64::try_from(seconds).ok());
        let threshold = self.eval.decimal("pass_threshold").map(|decimal| {
            decimal.value.parse().unwrap_or_else(|_| {
                let is_number =
                    decimal.value.parse::<f64>().is_ok_and(|n| (0.0..=1.0).contains(&n));
                // What is out of range has been reported already.
                if is_number {
                    let message = "`pass_threshold` must be a plain decimal from 0 to 1";
                    problems.at(decimal.span, message).code = Some("EVAL_INVALID_THRESHOLD");
                }
                Threshold::ALL
            })
        });
        Settings {
            trials: count("trials_per_case").unwrap_or(1),
            threshold: threshold.unwrap_or(Threshold::ALL),
            parallel: count("parallel").map(|most| most.max(1)),
            timeout: Duration::from_secs(seconds.unwrap_or(TIMEOUT)),
            ..settings(None, problems)
        }
    }

    /// The agents on the command line, each once; without any, the one that is installed.
    fn agents(&self) -> Vec<String> {
        if self.wanted.targets.is_empty() {
            return match self.installed().as_slice() {
                [only] => vec![(*only).to_owned()],
                _ => Vec::new(),
            };
        }
        let mut agents: Vec<String> = Vec::new();
        for name in self.wanted.targets {
            if !agents.contains(name) {
                agents.push(name.clone());
            }
        }
        agents
    }

    /// The agents that could be chosen.
    fn installed(&self) -> Vec<&'static str> {
        let is_there = |agent: &CodingAgent| {
            programs::agent_target(*agent, self.wanted.model, &[], self.environment).is_some()
        };
        CodingAgent::ALL.into_iter().filter(is_there).map(CodingAgent::name).collect()
    }

    fn targets(
        &self,
        folder: &Path,
        warnings: &mut Vec<(&'static str, String)>,
        problems: &mut Problems<'_>,
    ) -> Option<Vec<Target>> {
        let may_miss = self.eval.boolean("fail_on_missing_agent") == Some(false);
        let mut missing = Vec::new();
        let mut targets = Vec::new();
        let known = || CodingAgent::ALL.iter().map(|agent| agent.name());
        for name in self.agents() {
            let Some(agent) = CodingAgent::find(&name) else {
                let problem =
                    problems.at(self.eval.span.clone(), format!("there is no agent `{name}`"));
                problem.code = Some(UNAVAILABLE);
                problem.hint = suggest(&name, known().collect::<Vec<_>>());
                continue;
            };
            let program = programs::agent_target(agent, self.wanted.model, &[], self.environment);
            match program {
                Some(program) => targets.push(self.target(&name, folder, program)?),
                None => missing.push(programs::unavailable(agent)),
            }
        }
        // A run of nothing would pass.
        let is_fatal = !may_miss || targets.is_empty();
        for message in missing {
            if is_fatal {
                let problem = problems.at(self.eval.span.clone(), message);
                problem.code = Some(UNAVAILABLE);
                problem.hint = Some(INSTALL.to_owned());
            } else {
                warnings.push((UNAVAILABLE, format!("{message}; it is left out")));
            }
        }
        if self.wanted.targets.is_empty() && targets.is_empty() && self.wanted.must_run {
            let installed = self.installed();
            let (message, names) = match installed.len() {
                0 => ("no agent is installed", known().collect()),
                _ => ("several agents are installed, and none is chosen", installed),
            };
            let problem = problems.at(self.eval.span.clone(), message);
            problem.code = Some(UNAVAILABLE);
            problem.hint = Some(format!("`--agent NAME`, with one of {}", names.join(", ")));
        }
        Some(targets)
    }

    fn target(&self, name: &str, folder: &Path, program: ProgramTarget) -> Option<Target> {
        let workspace = std::path::absolute(folder.join(".")).ok();
        Some(Target {
            name: name.into(),
            gate: true,
            // Whatever stands in a prompt, it is no template.
            prompt: Template::compile("{{ prompt }}").ok()?,
            timeout: None,
            kind: TargetKind::Program(ProgramTarget { workspace, ..program }),
            roles: Vec::new(),
            sample: None,
        })
    }
}

/// What results of a target depend on.
fn part(target: &Target) -> (String, String) {
    let model = match &target.kind {
        TargetKind::Program(ProgramTarget { agent: Some((agent, model)), .. }) => {
            format!("{} {}", agent.name(), model.as_deref().unwrap_or_default())
        }
        _ => String::new(),
    };
    (format!("target `{}`", target.name), model)
}
