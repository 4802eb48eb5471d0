//! Loading of FastSkill projects: `[tool.fastskill.eval]` of a `skill-project.toml` with its prompts and
//! checks.
//!
//! Agents on the command line become targets, and prompts become cases whose workspace is a copy of the
//! project. Checks become checks of each case, because they depend on its `should_trigger`.

mod checks;
mod prompts;

use super::checks::CheckReader;
use super::load_options::LoadOptions;
use super::programs::{self, INSTALL, ProgramTarget, UNAVAILABLE};
use super::settings::{self, Settings};
use super::spec::{MAX_TRIALS, Section, ValueType, coded, optional, required};
use super::suite::{FastSkillProject, Suite, folder_name};
use super::targets::{Target, TargetKind};
use super::tree::{self, Node};
use super::workspaces;
use crate::case::CaseSource;
use crate::env_file::EnvFile;
use crate::pricing::TrialPricing;
use crate::problem::{Problem, Problems, SuiteError, suggest};
use crate::template::Template;
use bakeoff_agent::CodingAgent;
use bakeoff_llm::Environment;
use bakeoff_stats::Threshold;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::de::DeTable;

/// Name of the project file.
pub(super) const FILE_NAME: &str = "skill-project.toml";

/// Error code of a project without `[tool.fastskill.eval]`.
pub(super) const CONFIG_MISSING: &str = "EVAL_CONFIG_MISSING";

const INVALID_CSV: &str = "EVAL_INVALID_CSV";

/// Default time limit of an agent in seconds.
const DEFAULT_TIMEOUT_SECONDS: u64 = 900;

const EVAL: Section = Section::new(
    "Evaluation of the skill",
    &[
        required("prompts", ValueType::Text, "CSV file with the prompts"),
        optional("checks", ValueType::Text, "TOML file with the checks"),
        optional(
            "timeout_seconds",
            ValueType::Integer { min: 1, max: 1_000_000_000 },
            "Time limit in seconds of an agent [default: 900]",
        ),
        coded(
            "EVAL_INVALID_TRIALS_CONFIG",
            optional(
                "trials_per_case",
                ValueType::Integer { min: 1, max: MAX_TRIALS as i64 },
                "Number of trials per case [default: 1]",
            ),
        ),
        optional(
            "parallel",
            ValueType::Integer { min: 0, max: u32::MAX as i64 },
            "Maximum number of concurrent trials [default: number of cores]",
        ),
        coded(
            "EVAL_INVALID_THRESHOLD",
            optional(
                "pass_threshold",
                ValueType::Number { min: 0.0, max: 1.0 },
                "Share of a case's trials that must pass [default: 1]",
            ),
        ),
        optional(
            "fail_on_missing_agent",
            ValueType::Boolean,
            "Whether a missing agent is an error [default: true]",
        ),
    ],
);

/// Returns whether a file is a FastSkill project, by its name or its content.
pub(super) fn is_project(path: &Path, table: &DeTable<'_>) -> bool {
    let has_table = Node::new(table, 0..0).table("tool").and_then(|tool| tool.table("fastskill"));
    path.file_name().is_some_and(|name| name == FILE_NAME) || has_table.is_some()
}

/// Returns the project file in the nearest folder above the current one.
pub(super) fn find_above() -> Option<PathBuf> {
    let current = std::env::current_dir().ok()?;
    current.ancestors().map(|folder| folder.join(FILE_NAME)).find(|file| file.is_file())
}

/// Loads a project.
pub(super) fn load(
    path: &Path,
    text: &str,
    table: &DeTable<'_>,
    options: LoadOptions<'_>,
    environment: Environment<'_>,
) -> Result<Suite, SuiteError> {
    let mut problems = Problems::new(path, text);
    let root = Node::new(table, 0..0);
    let eval =
        ["tool", "fastskill", "eval"].iter().try_fold(root.clone(), |node, name| node.table(name));
    let Some(eval) = eval else {
        let problem = problems.at(0..0, "missing table [tool.fastskill.eval]");
        problem.code = Some(CONFIG_MISSING);
        problem.hint = Some("add the table with `prompts = \"prompts.csv\"`".to_owned());
        return Err(problems.into());
    };
    let loader = ProjectLoader { path, text, root, eval, options, environment };
    match loader.load(&mut problems) {
        Some(suite) if problems.is_empty() => Ok(suite),
        _ => Err(problems.into()),
    }
}

struct ProjectLoader<'a, 't> {
    path: &'a Path,
    text: &'a str,
    root: Node<'a, 't>,
    eval: Node<'a, 't>,
    options: LoadOptions<'a>,
    environment: Environment<'a>,
}

impl ProjectLoader<'_, '_> {
    fn load(&self, problems: &mut Problems<'_>) -> Option<Suite> {
        let mut warnings = self.validate(problems);
        let settings = self.settings(problems);
        let folder = self.path.parent().unwrap_or(Path::new(""));
        let checks = self.eval.text("checks").map(|file| checks::read(folder, file, problems));
        let checks = checks.unwrap_or_default();
        let targets = self.targets(folder, &mut warnings, problems)?;
        let rows = prompts::read(folder, self.eval.text("prompts")?, &checks, problems)?;
        let prompts = absolute(&rows.path);
        let cases = CaseSource::inline(&rows.path, folder, rows.rows);
        let mut survey = cases.survey();
        let coded = |problem: Problem| Problem { code: Some(INVALID_CSV), ..problem };
        problems.extend(survey.problems.drain(..).map(coded));
        let mut workspace_problems = Problems::new(self.path, self.text);
        workspaces::check(&cases, &survey.fields, &targets, folder, &mut workspace_problems);
        problems.extend(workspace_problems.into_sorted().into_iter().map(coded));
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
            part_digests: targets.iter().map(target_part).collect(),
            check_reader: CheckReader::of_targets(folder, target_names.clone()),
            targets,
            select: None,
            unassigned_roles: Vec::new(),
            roles_file: None,
            target_names,
            cases,
            survey,
            checks: Vec::new(),
            judges: BTreeMap::new(),
            simulated: BTreeMap::new(),
            digest,
            warnings,
            env_file: EnvFile::default(),
            project: Some(FastSkillProject {
                root: absolute(folder),
                prompts,
                checks: self.eval.text("checks").map(|file| absolute(&folder.join(file.value))),
                check_count: checks.len(),
                fail_on_missing_agent: self.fails_on_missing_agent(),
            }),
        })
    }

    fn name(&self) -> String {
        let metadata = self.root.table("metadata");
        let text = |key| Some(metadata.as_ref()?.text(key)?.value.trim().to_owned());
        let name = text("name").or_else(|| text("id")).filter(|name| !name.is_empty());
        name.unwrap_or_else(|| folder_name(self.path))
    }

    /// Validates the table. Unknown keys are warnings, because FastSkill ignores them.
    fn validate(&self, problems: &mut Problems<'_>) -> Vec<(&'static str, String)> {
        let mut all = Problems::new(self.path, self.text);
        let span = self.eval.span.clone();
        let name = "[tool.fastskill.eval]";
        tree::validate(self.eval.entries(), span, &EVAL, name, &mut all);
        let (unknown, invalid): (Vec<Problem>, Vec<Problem>) = all
            .into_sorted()
            .into_iter()
            .partition(|problem| problem.message.starts_with("unknown key"));
        problems.extend(invalid);
        let warning = |problem: Problem| {
            let hint = problem.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
            ("EVAL_CONFIG_UNKNOWN", format!("{} is ignored{hint}", problem.message))
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
                // The validation has reported values out of range.
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
            min_score: None,
            parallel: count("parallel").map(|max| max.max(1)),
            timeout: Duration::from_secs(seconds.unwrap_or(DEFAULT_TIMEOUT_SECONDS)),
            ..settings::read(None, problems)
        }
    }

    fn fails_on_missing_agent(&self) -> bool {
        self.eval.boolean("fail_on_missing_agent") != Some(false)
    }

    /// Returns the agents on the command line without duplicates, or the only installed agent.
    fn agents(&self) -> Vec<String> {
        if self.options.all_agents {
            let mut installed = self.installed();
            installed.sort_unstable();
            return installed.into_iter().map(str::to_owned).collect();
        }
        if self.options.targets.is_empty() {
            return match self.installed().as_slice() {
                [only] => vec![(*only).to_owned()],
                _ => Vec::new(),
            };
        }
        let mut agents: Vec<String> = Vec::new();
        for name in self.options.targets {
            if !agents.contains(name) {
                agents.push(name.clone());
            }
        }
        agents
    }

    /// Returns the names of the installed agents.
    fn installed(&self) -> Vec<&'static str> {
        let is_installed = |agent: &CodingAgent| {
            programs::agent_target(*agent, self.options.model, &[], self.environment).is_some()
        };
        CodingAgent::ALL.into_iter().filter(is_installed).map(CodingAgent::name).collect()
    }

    fn targets(
        &self,
        folder: &Path,
        warnings: &mut Vec<(&'static str, String)>,
        problems: &mut Problems<'_>,
    ) -> Option<Vec<Target>> {
        let allows_missing = !self.fails_on_missing_agent();
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
            let program = programs::agent_target(agent, self.options.model, &[], self.environment);
            match program {
                Some(program) => targets.push(self.target(&name, folder, program)?),
                None => missing.push(programs::unavailable(agent)),
            }
        }
        // A run without trials would pass.
        let is_fatal = !allows_missing || targets.is_empty();
        for message in missing {
            if is_fatal {
                let problem = problems.at(self.eval.span.clone(), message);
                problem.code = Some(UNAVAILABLE);
                problem.hint = Some(INSTALL.to_owned());
            } else {
                warnings.push((UNAVAILABLE, format!("{message}; skipped")));
            }
        }
        if self.options.targets.is_empty() && targets.is_empty() && self.options.must_run {
            let installed = self.installed();
            let (message, names) = match installed.len() {
                0 => ("no agent installed", known().collect()),
                _ => ("several agents installed, none selected", installed),
            };
            let problem = problems.at(self.eval.span.clone(), message);
            problem.code = Some(UNAVAILABLE);
            problem.hint = Some(format!(
                "select one with `--agent NAME`: {}; or all with `--all`",
                names.join(", ")
            ));
        }
        Some(targets)
    }

    fn target(&self, name: &str, folder: &Path, program: ProgramTarget) -> Option<Target> {
        let workspace = Some(absolute(folder));
        Some(Target {
            name: name.into(),
            gate: true,
            // The prompts of FastSkill are not templates, so they are inserted as a field.
            prompt: Template::compile("{{ prompt }}").ok()?,
            timeout: None,
            kind: TargetKind::Program(ProgramTarget { workspace, ..program }),
            pricing: TrialPricing::default(),
            roles: Vec::new(),
            sample: None,
        })
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(Path::new(".").join(path)).unwrap_or_else(|_| path.to_owned())
}

/// Returns the part of a target that results depend on, by display name.
fn target_part(target: &Target) -> (String, String) {
    let model = match &target.kind {
        TargetKind::Program(ProgramTarget { agent: Some((agent, model)), .. }) => {
            format!("{} {}", agent.name(), model.as_deref().unwrap_or_default())
        }
        _ => String::new(),
    };
    (format!("target `{}`", target.name), model)
}
