//! The suite file: from text to something that can be run, or to a list of what is wrong with it.

use crate::case::{Case, CaseSource, Row, Survey};
use crate::checks::{CheckReader, CheckSpec};
use crate::coverage::Coverage;
use crate::form;
use crate::problem::{Problem, Problems, SourcePosition, SuiteError};
use crate::roles::Roles;
use crate::select::{self, SelectPlan};
use crate::settings::{Settings, settings};
use crate::targets::{self, Target, TargetKind};
use crate::tree::{self, Node};
use crate::variables::check_variables;
use crate::{chain, combinations, fastskill, models, parts, spec, workspaces};
use bakeoff_llm::{Environment, Model, ModelConfig};
use bakeoff_sim::SimModel;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::de::DeTable;

/// The file's usual name.
pub const SUITE_FILE_NAME: &str = "bakeoff.toml";

/// A suite, ready to run.
#[derive(Debug)]
pub struct Suite {
    /// Its name.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// Its settings.
    pub settings: Settings,
    /// What is under test. When combinations are wanted, those of one target, the last role changing
    /// fastest.
    pub targets: Vec<Target>,
    /// What is searched for, when combinations are wanted.
    pub select: Option<SelectPlan>,
    /// Roles that nobody fills but a first candidate, so that their targets cannot be run.
    pub unassigned_roles: Vec<String>,
    /// Names of all targets in the file, wanted or not.
    pub target_names: Vec<String>,
    /// What it is asked.
    pub cases: CaseSource,
    /// What is known of all cases.
    pub survey: Survey,
    /// What makes an answer right.
    pub checks: Vec<CheckSpec>,
    /// Models that judge, by the names that checks give them.
    pub judges: BTreeMap<String, Model>,
    pub(crate) check_reader: CheckReader,
    /// Simulated models of its own.
    pub simulated: BTreeMap<String, SimModel>,
    /// Digests of targets, checks and models, by what people call them.
    pub(crate) parts: BTreeMap<String, String>,
    /// Changes when the file or a case changes.
    pub digest: String,
    /// What people should know before it is run: codes and messages.
    pub warnings: Vec<(&'static str, String)>,
    /// The FastSkill project that it is, if it is one.
    pub project: Option<Project>,
}

/// What is wanted of a suite.
#[derive(Debug, Clone, Copy, Default)]
pub struct LoadOptions<'a> {
    /// Names of targets; all when there are none. Of a FastSkill project, the agents.
    pub targets: &'a [String],
    /// Of a FastSkill project: the agents' name of their model.
    pub model: Option<&'a str>,
    /// It is to be run, and so needs a target.
    pub must_run: bool,
    /// No target is asked, so keys of targets are not needed; those of judges are.
    pub judges_only: bool,
    /// The target of `[select]`, once for each combination of who fills its roles, in place of all
    /// targets.
    pub combinations: bool,
}

/// Where the files of a FastSkill project are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// Its folder.
    pub root: PathBuf,
    /// Its checks, if it has any.
    pub checks: Option<PathBuf>,
}

impl Suite {
    /// Loads and checks a suite: a file, or a folder with a `bakeoff.toml`. Makes no call.
    ///
    /// # Errors
    ///
    /// All problems of the file and of its cases.
    pub fn load(path: &Path, environment: Environment<'_>) -> Result<Suite, SuiteError> {
        Suite::load_with(path, LoadOptions::default(), environment)
    }

    /// Digests of what results depend on, by what people call it; targets that are not wanted are
    /// left out.
    pub fn parts(&self) -> BTreeMap<String, String> {
        let mut parts = self.parts.clone();
        let is_base = |name: &str| self.targets.iter().any(|target| *target.base() == *name);
        for name in self.target_names.iter().filter(|name| !is_base(name)) {
            parts.remove(&format!("target `{name}`"));
        }
        let used: BTreeMap<&str, &str> = self
            .targets
            .iter()
            .flat_map(|target| &target.roles)
            .map(|(role, filler)| (role.as_str(), filler.as_str()))
            .collect();
        for (role, filler) in used {
            let candidates = self.select.as_ref().and_then(|plan| plan.candidates(role));
            let who = candidates.map_or(filler.to_owned(), |candidates| candidates.join(", "));
            parts.insert(format!("role `{role}`"), who);
        }
        parts
    }

    /// The checks that a case brings along; the error is for people.
    pub fn own_checks(&self, case: &Case) -> Result<Vec<CheckSpec>, String> {
        if case.checks.is_none() {
            return Ok(Vec::new());
        }
        let ids = self.checks.iter().map(|check| check.id.clone()).collect();
        let wrong = |wrong: Vec<form::Wrong>| {
            wrong.into_iter().map(|wrong| wrong.message).collect::<Vec<_>>().join("; ")
        };
        self.check_reader.of_case(case, ids).map_err(wrong)
    }

    /// [`Suite::load`], with what is wanted alone. A `skill-project.toml` is a suite, too.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn load_with(
        path: &Path,
        wanted: LoadOptions<'_>,
        environment: Environment<'_>,
    ) -> Result<Suite, SuiteError> {
        let path = file_of(path);
        let text = read(&path)?;
        let mut problems = Problems::new(&path, &text);
        let Some(tree) = parse(&text, &mut problems) else {
            return Err(problems.into());
        };
        if fastskill::is_project(&path, tree.get_ref()) {
            if wanted.combinations {
                return Err(select::missing(&path, None).into());
            }
            return fastskill::load(&path, &text, tree.get_ref(), wanted, environment);
        }
        tree::validate(tree.get_ref(), 0..0, &spec::SUITE_FILE, "the suite", &mut problems);
        let root = Node::new(tree.get_ref(), 0..0);
        if wanted.combinations && root.get("select").is_none() {
            // Without it nobody need fill any role.
            problems.extend([select::missing(&path, Some(&root))]);
            return Err(problems.into());
        }
        let searched = wanted.combinations.then(|| select::target(&root)).flatten();
        let only = searched.map(|target| vec![target]);
        let refining = Refining {
            path: &path,
            text: &text,
            only: only.as_deref().unwrap_or(wanted.targets),
            roles: &Roles::read(&root, wanted.combinations, !wanted.must_run),
            combinations: wanted.combinations,
            environment,
            judges_only: wanted.judges_only,
        };
        match refining.refine(&root, &mut problems) {
            Some(suite) if problems.is_empty() => Ok(suite),
            _ => Err(problems.into()),
        }
    }
}

/// The text as TOML; `None` when it is not TOML, as everything else would only
/// complain about what could not be read.
fn parse<'a>(text: &'a str, problems: &mut Problems<'_>) -> Option<toml::Spanned<DeTable<'a>>> {
    let (tree, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        problems.at(error.span().unwrap_or(0..0), format!("not TOML: {}", error.message()));
    }
    if !errors.is_empty() {
        return None;
    }
    Some(tree)
}

/// Models that a suite file defines, by name.
#[derive(Debug, Clone, Default)]
pub struct SuiteModels {
    /// Under `[models]`.
    pub models: BTreeMap<String, ModelConfig>,
    /// Under `[sim]`.
    pub simulated: BTreeMap<String, SimModel>,
}

/// The models that a suite file defines; nothing else of it need be right but its form.
///
/// # Errors
///
/// All problems of the file's form and of its models.
pub fn suite_models(path: &Path) -> Result<SuiteModels, SuiteError> {
    let path = file_of(path);
    let text = read(&path)?;
    let mut problems = Problems::new(&path, &text);
    let Some(tree) = parse(&text, &mut problems) else {
        return Err(problems.into());
    };
    tree::validate_present(tree.get_ref(), &spec::SUITE_FILE, "the suite", &mut problems);
    let root = Node::new(tree.get_ref(), 0..0);
    let models = models::named(&root, &mut problems);
    if !problems.is_empty() {
        return Err(problems.into());
    }
    Ok(SuiteModels {
        models: models.into_iter().map(|(name, model)| (name, model.config)).collect(),
        simulated: models::simulated(&root),
    })
}

/// The suite file that a path means.
fn file_of(path: &Path) -> PathBuf {
    let within = |name: &str| match path == Path::new(".") {
        true => PathBuf::from(name),
        false => path.join(name),
    };
    let own = within(SUITE_FILE_NAME);
    let project = within(fastskill::FILE_NAME);
    match path.is_dir() {
        true if !own.exists() && project.exists() => project,
        true => own,
        false => path.to_owned(),
    }
}

fn read(path: &Path) -> Result<String, Problem> {
    let problem = |message: String, hint: &str| Problem {
        code: path
            .file_name()
            .is_some_and(|name| name == fastskill::FILE_NAME)
            .then_some(fastskill::CONFIG_MISSING),
        message,
        path: path.to_owned(),
        position: None,
        hint: Some(hint.to_owned()),
    };
    let is_file = std::fs::metadata(path).map(|metadata| metadata.is_file());
    if matches!(is_file, Ok(false)) {
        return Err(problem(
            "not a regular file".to_owned(),
            "a suite is a file, or a folder with one",
        ));
    }
    let bytes = std::fs::read(path).map_err(|error| {
        let hint = match error.kind() {
            std::io::ErrorKind::NotFound => "`bakeoff init` writes a suite to start from",
            _ => "it must be a file that you may read",
        };
        problem(format!("cannot read the suite: {error}"), hint)
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
        problem(format!("line {line} is not UTF-8"), "save the file as UTF-8")
    })
}

/// Turns a validated tree into a suite. Goes on after a problem, to find the others.
pub(crate) struct Refining<'a> {
    pub(crate) path: &'a Path,
    pub(crate) text: &'a str,
    /// Names of the targets that are wanted; all when empty.
    pub(crate) only: &'a [String],
    /// Who fills which role.
    pub(crate) roles: &'a Roles<'a>,
    /// All combinations of who fills them are wanted.
    pub(crate) combinations: bool,
    pub(crate) environment: Environment<'a>,
    /// Keys of targets are not needed.
    pub(crate) judges_only: bool,
}

impl Refining<'_> {
    fn refine(&self, root: &Node<'_, '_>, problems: &mut Problems<'_>) -> Option<Suite> {
        let settings = settings(root.table("suite").as_ref(), problems);
        let name = root
            .table("suite")
            .and_then(|suite| Some(suite.text("name")?.value.trim().to_owned()))
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| folder_name(self.path));
        let simulated = models::simulated(root);
        let mut models = models::named(root, problems);
        models::add_simulated(root, &mut models);
        let cases = self.cases(root, problems);
        let mut templates = Vec::new();
        let lenient =
            |name: &str| (self.environment)(name).or_else(|| Some("not needed".to_owned()));
        let environment = if self.judges_only { &lenient } else { self.environment };
        let for_targets = Refining { environment, ..*self };
        let targets = targets::read(root, &models, &for_targets, &mut templates, problems);
        let search = select::read(root, &models, &for_targets, problems);
        let reader = CheckReader::new(self.folder(), root, &targets);
        let checks = reader.of_suite(root, self.environment, &mut templates, problems);
        let (cases, survey) = cases?;
        check_variables(&templates, &survey, problems);
        let wanted: Vec<_> =
            root.tables("target").into_iter().filter(|node| self.wants(node)).collect();
        chain::check_fields(&wanted, &survey.fields, problems);
        workspaces::check(&cases, &survey.fields, &targets, self.folder(), problems);
        self.check_bodies(root, &targets, &survey, problems);
        let coverage = Coverage {
            refining: self,
            reader: &reader,
            checks: &checks,
            targets: &targets,
            models: &models,
        };
        let judges = coverage.look(root, &cases, &survey, problems);
        let digest = blake3::Hasher::new()
            .update(self.text.as_bytes())
            .update(survey.digest.as_bytes())
            .finalize()
            .to_hex()
            .to_string();
        let path = self.path.to_owned();
        let name_of = |node: &Node<'_, '_>| Some(node.text("name")?.value.to_owned());
        let target_names = root.tables("target").iter().filter_map(name_of).collect();
        let stood_in = |role: &&String| !self.combinations && !self.roles.has(role);
        let used = targets.iter().flat_map(|target| target.roles.iter().map(|(role, _)| role));
        let unassigned_roles = used.filter(stood_in).cloned().collect();
        // What is wrong already would only be wrong once more for each combination.
        let (targets, select) = match search.filter(|_| self.combinations && problems.is_empty()) {
            Some(search) => {
                let base = targets.first()?;
                (combinations::expand(base, &search), Some(search.plan))
            }
            None => (targets, None),
        };
        Some(Suite {
            name,
            path,
            settings,
            targets,
            select,
            unassigned_roles,
            target_names,
            cases,
            survey,
            checks,
            judges,
            check_reader: reader,
            simulated,
            parts: parts::digests(root, self.folder()),
            digest,
            warnings: Vec::new(),
            project: None,
        })
    }

    /// Fills in what services are sent with the first case: what is no JSON there hardly ever is.
    fn check_bodies(
        &self,
        root: &Node<'_, '_>,
        targets: &[Target],
        survey: &Survey,
        problems: &mut Problems<'_>,
    ) {
        let Some(first) = &survey.first else { return };
        for target in targets {
            let TargetKind::Service(service) = &target.kind else { continue };
            let body = target.prompt.render(first).and_then(|prompt| service.body(first, &prompt));
            // What cannot be filled in has been reported already.
            let Some(wrong) = body.ok().and_then(|body| service.wrong_body(&body)) else {
                continue;
            };
            let named = |node: &&Node<'_, '_>| {
                node.text("name").is_some_and(|name| target.name == name.value)
            };
            let nodes = root.tables("target");
            let Some(value) = nodes.iter().find(named).and_then(|node| node.get("body")) else {
                continue;
            };
            problems.at(value.span(), wrong).with_hint(
                "texts stand between quotation marks: `{\"question\": \"{{ prompt }}\"}`; other values do not",
            );
        }
    }

    pub(crate) fn wants(&self, target: &Node<'_, '_>) -> bool {
        let name = target.text("name").map(|name| name.value);
        // A name that nobody has is for the caller to complain about.
        let known = self.only.is_empty() || name.is_none();
        known || self.only.iter().any(|wanted| Some(wanted.as_str()) == name)
    }

    /// Where the files lie that the suite names.
    pub(crate) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    fn cases(
        &self,
        root: &Node<'_, '_>,
        problems: &mut Problems<'_>,
    ) -> Option<(CaseSource, Survey)> {
        let node = root.table("cases")?;
        let inline = node.tables("inline");
        let source = match (node.text("file"), node.get("inline")) {
            (Some(file), Some(_)) => {
                problems
                    .at(file.span, "cases have both `file` and `inline`")
                    .with_hint("keep one of them");
                return None;
            }
            (Some(file), None) => match CaseSource::open(&self.folder().join(file.value)) {
                Ok(source) => source,
                Err(problem) if problem.position.is_none() => {
                    // The file itself is the trouble: show where it is named.
                    let shown = format!("{}: {}", file.value, problem.message);
                    problems.at(file.span, shown).hint = problem.hint;
                    return None;
                }
                Err(problem) => {
                    problems.extend([problem]);
                    return None;
                }
            },
            (None, Some(_)) => {
                let row = |case: &Node<'_, '_>| Row {
                    start: 0,
                    position: Some(Box::new(SourcePosition::of(self.text, case.span.clone()))),
                    fields: case.to_json(),
                };
                CaseSource::inline(self.path, inline.iter().map(row).collect())
            }
            (None, None) => {
                problems
                    .at(node.span.clone(), "[cases] has neither `file` nor `inline`")
                    .with_hint("write `file = \"cases.jsonl\"`, or [[cases.inline]] tables");
                return None;
            }
        };
        let mut survey = source.survey();
        let found_wrong = !survey.problems.is_empty();
        problems.extend(survey.problems.drain(..));
        if survey.ids.is_empty() && !found_wrong {
            let span = node.text("file").map_or(node.span.clone(), |file| file.span);
            problems.at(span, "there are no cases").with_hint("add at least one case");
            return None;
        }
        Some((source, survey))
    }
}

pub(crate) fn folder_name(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let name = absolute.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    name.unwrap_or("suite").to_owned()
}
