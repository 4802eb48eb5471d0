//! Loading of the suite file: from text to a runnable suite or to a list of problems.

use crate::case::{Case, CaseRow, CaseSource, Survey};
use crate::case_error::CaseError;
use crate::check_fields::CheckProblem;
use crate::checks::{CheckReader, CheckSpec};
use crate::coverage::Coverage;
use crate::env_file::EnvFile;
use crate::load_options::LoadOptions;
use crate::problem::{Problem, Problems, SourcePosition, SuiteError};
use crate::roles::Roles;
use crate::roles_file::RolesFile;
use crate::select::{self, SelectPlan};
use crate::settings::{self, Settings};
use crate::targets::{self, Target, TargetKind};
use crate::tree::{self, Node};
use crate::variables::check_variables;
use crate::{
    chain, combinations, digests, fastskill, ignored_settings, matrix, media, models, spec,
    target_defaults, workspaces,
};
use bakeoff_llm::{Environment, Model, ModelConfig};
use bakeoff_sim::SimModel;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::de::DeTable;

/// Default name of the suite file.
pub const SUITE_FILE_NAME: &str = "bakeoff.toml";

/// Validated suite, ready to run.
#[derive(Debug)]
pub struct Suite {
    /// Suite name.
    pub name: String,
    /// Path of the suite file.
    pub path: PathBuf,
    /// Settings.
    pub settings: Settings,
    /// Targets. When loaded with combinations, the combinations of one target, where the last role changes
    /// fastest.
    pub targets: Vec<Target>,
    /// Plan of the search, when loaded with combinations.
    pub select: Option<SelectPlan>,
    /// Roles without an assigned model, represented by their first candidate. Their targets cannot be run.
    pub unassigned_roles: Vec<String>,
    /// File whose roles replaced those of the suite.
    pub roles_file: Option<PathBuf>,
    /// Names of all targets in the file, selected or not.
    pub target_names: Vec<String>,
    /// Source of the cases.
    pub cases: CaseSource,
    /// Summary of all cases.
    pub survey: Survey,
    /// Checks of the suite.
    pub checks: Vec<CheckSpec>,
    /// Judge models by their names in checks.
    pub judges: BTreeMap<String, Model>,
    pub(crate) check_reader: CheckReader,
    /// Simulated models defined in the suite.
    pub simulated: BTreeMap<String, SimModel>,
    /// Digests of targets, checks and models by display name.
    pub(crate) part_digests: BTreeMap<String, String>,
    /// Digest of the file and the cases.
    pub digest: String,
    /// Warnings for the user: codes and messages.
    pub warnings: Vec<(&'static str, String)>,
    /// Variables of the file `.env` next to the suite that the environment lacks.
    pub env_file: EnvFile,
    /// FastSkill project that the suite was loaded from, if any.
    pub project: Option<FastSkillProject>,
}

/// Files and settings of a FastSkill project. Paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FastSkillProject {
    /// Folder of the project.
    pub root: PathBuf,
    /// File with the prompts.
    pub prompts: PathBuf,
    /// File with the checks, if any.
    pub checks: Option<PathBuf>,
    /// Number of checks in it.
    pub check_count: usize,
    /// Whether a missing agent is an error.
    pub fail_on_missing_agent: bool,
}

impl Suite {
    /// Loads and validates a suite: a file, or a folder with a `bakeoff.toml`. Makes no calls. A file `.env` next to it
    /// supplies variables that the environment lacks.
    ///
    /// # Errors
    ///
    /// Returns all problems of the file and of its cases.
    pub fn load(path: &Path, environment: Environment<'_>) -> Result<Suite, SuiteError> {
        Suite::load_with(path, LoadOptions::default(), environment)
    }

    /// Returns the digests of the parts that results depend on, by display name. Targets that are not selected
    /// are omitted.
    pub fn part_digests(&self) -> BTreeMap<String, String> {
        let mut digests = self.part_digests.clone();
        let is_base = |name: &str| self.targets.iter().any(|target| *target.base() == *name);
        for name in self.target_names.iter().filter(|name| !is_base(name)) {
            digests.remove(&format!("target `{name}`"));
        }
        let used: BTreeMap<&str, &str> = self
            .targets
            .iter()
            .flat_map(|target| &target.roles)
            .map(|(role, model)| (role.as_str(), model.as_str()))
            .collect();
        for (role, model) in used {
            let candidates = self.select.as_ref().and_then(|plan| plan.candidates(role));
            let models = candidates.map_or(model.to_owned(), |candidates| candidates.join(", "));
            digests.insert(format!("role `{role}`"), models);
        }
        digests
    }

    /// Returns the checks of a case.
    ///
    /// # Errors
    ///
    /// When a check of the case is invalid.
    pub fn case_checks(&self, case: &Case) -> Result<Vec<CheckSpec>, CaseError> {
        if case.checks.is_none() {
            return Ok(Vec::new());
        }
        let ids = self.checks.iter().map(|check| check.id.clone()).collect();
        let error = |problems: Vec<CheckProblem>| {
            CaseError::Checks(problems.into_iter().map(|problem| problem.message).collect())
        };
        self.check_reader.of_case(case, ids).map_err(error)
    }

    /// Loads a suite with options. A `skill-project.toml` is loaded as a suite.
    ///
    /// # Errors
    ///
    /// Returns all problems, as [`Suite::load`] does.
    pub fn load_with(
        path: &Path,
        options: LoadOptions<'_>,
        environment: Environment<'_>,
    ) -> Result<Suite, SuiteError> {
        let path = suite_file(path);
        let text = read(&path)?;
        let env_file = EnvFile::read(folder(&path), environment)?;
        let environment = &|name: &str| environment(name).or_else(|| env_file.get(name));
        let mut suite = Suite::load_file(&path, &text, options, environment)?;
        suite.warnings.extend(env_file.warnings());
        Ok(Suite { env_file, ..suite })
    }

    fn load_file(
        path: &Path,
        text: &str,
        options: LoadOptions<'_>,
        environment: Environment<'_>,
    ) -> Result<Suite, SuiteError> {
        let roles_file = options.roles.map(|path| RolesFile::read(path, text.len())).transpose()?;
        let mut problems = Problems::new(path, text);
        if let Some(file) = &roles_file {
            problems.add_file(&file.path, file.text());
        }
        let Some(tree) = parse(text, &mut problems) else {
            return Err(problems.into());
        };
        if fastskill::is_project(path, tree.get_ref()) {
            if options.combinations {
                return Err(select::missing_section(path, None).into());
            }
            return fastskill::load(path, text, tree.get_ref(), options, environment);
        }
        tree::validate(tree.get_ref(), 0..0, &spec::SUITE_FILE, "the suite", &mut problems);
        let mut table = tree.into_inner();
        matrix::add_targets(&mut table, folder(path), &mut problems);
        target_defaults::apply(&mut table);
        if let Some(file) = &roles_file
            && !file.merge(&mut table, &mut problems)
        {
            return Err(problems.into());
        }
        let root = Node::new(&table, 0..0);
        if options.combinations && root.get("select").is_none() {
            // Further validation would only report the missing models of roles.
            problems.extend([select::missing_section(path, Some(&root))]);
            return Err(problems.into());
        }
        let searched_target = options.combinations.then(|| select::target_name(&root)).flatten();
        let only = searched_target.map(|target| vec![target]);
        let context = LoadContext {
            path,
            text,
            roles_file: roles_file.as_ref(),
            only: only.as_deref().unwrap_or(options.targets),
            roles: &Roles::read(&root, options.combinations, !options.must_run),
            loads_combinations: options.combinations,
            environment,
            judges_only: options.judges_only,
        };
        match context.load(&root, &mut problems) {
            Some(suite) if problems.is_empty() => Ok(suite),
            _ => Err(problems.into()),
        }
    }
}

/// Parses the text as TOML; `None` on syntax errors, because later problems would only result from them.
pub(crate) fn parse<'a>(
    text: &'a str,
    problems: &mut Problems<'_>,
) -> Option<toml::Spanned<DeTable<'a>>> {
    let (tree, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        problems.at(error.span().unwrap_or(0..0), format!("not TOML: {}", error.message()));
    }
    if !errors.is_empty() {
        return None;
    }
    Some(tree)
}

/// Models defined in a suite file, by name.
#[derive(Debug, Clone, Default)]
pub struct SuiteModels {
    /// Models under `[models]`.
    pub models: BTreeMap<String, ModelConfig>,
    /// Simulated models under `[sim]`.
    pub simulated: BTreeMap<String, SimModel>,
    /// Variables of the file `.env` next to the suite that the environment lacks.
    pub env_file: EnvFile,
}

/// Reads the models of a suite file and the file `.env` next to it. The rest of the suite needs only valid keys and
/// values.
///
/// # Errors
///
/// Returns all problems of keys, values and models.
pub fn suite_models(path: &Path, environment: Environment<'_>) -> Result<SuiteModels, SuiteError> {
    let path = suite_file(path);
    let text = read(&path)?;
    let env_file = EnvFile::read(folder(&path), environment)?;
    let mut problems = Problems::new(&path, &text);
    let Some(tree) = parse(&text, &mut problems) else {
        return Err(problems.into());
    };
    tree::validate_present(tree.get_ref(), &spec::SUITE_FILE, "the suite", &mut problems);
    let root = Node::new(tree.get_ref(), 0..0);
    let models = models::read_named(&root, &mut problems);
    if !problems.is_empty() {
        return Err(problems.into());
    }
    Ok(SuiteModels {
        models: models.into_iter().map(|(name, model)| (name, model.config)).collect(),
        simulated: models::read_simulated(&root),
        env_file,
    })
}

/// Returns the path of the suite file for a file or folder. For the current folder, a FastSkill project may also be in
/// a folder above.
pub(crate) fn suite_file(path: &Path) -> PathBuf {
    let within = |name: &str| match path == Path::new(".") {
        true => PathBuf::from(name),
        false => path.join(name),
    };
    let suite = within(SUITE_FILE_NAME);
    let project = within(fastskill::FILE_NAME);
    match path.is_dir() {
        true if suite.exists() => suite,
        true if project.exists() => project,
        true if path == Path::new(".") => fastskill::find_above().unwrap_or(suite),
        true => suite,
        false => path.to_owned(),
    }
}

pub(crate) fn read(path: &Path) -> Result<String, Problem> {
    let irregular_hint = "use a suite file, or a folder that contains one";
    read_as("suite", path, [irregular_hint, "create one with `bakeoff init`"])
}

/// Reads a text file. Error messages name it `what`; the hints are those for a folder and for a missing file.
pub(super) fn read_as(
    what: &str,
    path: &Path,
    [irregular_hint, missing_hint]: [&str; 2],
) -> Result<String, Problem> {
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
        return Err(problem("not a regular file".to_owned(), irregular_hint));
    }
    let bytes = std::fs::read(path).map_err(|error| {
        let hint = match error.kind() {
            std::io::ErrorKind::NotFound => missing_hint,
            _ => "check the permissions of the file",
        };
        problem(format!("cannot read the {what}: {error}"), hint)
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let position = SourcePosition::of_invalid_utf8(error.as_bytes());
        let problem = problem("not UTF-8".to_owned(), "save the file as UTF-8");
        Problem { position: Some(Box::new(position)), ..problem }
    })
}

/// Inputs and options for loading a suite. Loading continues after a problem to report all of them.
pub(crate) struct LoadContext<'a> {
    pub(crate) path: &'a Path,
    pub(crate) text: &'a str,
    /// File whose roles replace those of the suite.
    pub(crate) roles_file: Option<&'a RolesFile>,
    /// Names of the selected targets; empty for all.
    pub(crate) only: &'a [String],
    /// Models assigned to roles.
    pub(crate) roles: &'a Roles<'a>,
    /// Whether the combinations of models for roles are loaded.
    pub(crate) loads_combinations: bool,
    pub(crate) environment: Environment<'a>,
    /// Whether API keys of targets are not needed.
    pub(crate) judges_only: bool,
}

impl LoadContext<'_> {
    fn load(&self, root: &Node<'_, '_>, problems: &mut Problems<'_>) -> Option<Suite> {
        let settings = settings::read(root.table("suite").as_ref(), problems);
        let name = root
            .table("suite")
            .and_then(|suite| Some(suite.text("name")?.value.trim().to_owned()))
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| folder_name(self.path));
        let simulated = models::read_simulated(root);
        let mut models = models::read_named(root, problems);
        models::add_simulated(root, &mut models);
        let cases = self.cases(root, problems);
        let mut templates = Vec::new();
        let lenient =
            |name: &str| (self.environment)(name).or_else(|| Some("not needed".to_owned()));
        let environment = if self.judges_only { &lenient } else { self.environment };
        let for_targets = LoadContext { environment, ..*self };
        let targets = targets::read(root, &models, &for_targets, &mut templates, problems);
        let section = select::read(root, &models, &for_targets, problems);
        let reader = CheckReader::new(self.folder(), root, &targets);
        let checks = reader.of_suite(root, self.environment, &mut templates, problems);
        let (cases, survey) = cases?;
        check_variables(&templates, &survey, problems);
        let selected: Vec<_> =
            root.tables("target").into_iter().filter(|node| self.is_selected(node)).collect();
        chain::check_fields(&selected, &survey.fields, problems);
        workspaces::check(&cases, &survey.fields, &targets, self.folder(), problems);
        self.check_bodies(root, &targets, &survey, problems);
        let coverage = Coverage {
            context: self,
            reader: &reader,
            checks: &checks,
            targets: &targets,
            models: &models,
        };
        let judges = coverage.validate(root, &cases, &survey, problems);
        let digest = blake3::Hasher::new()
            .update(self.text.as_bytes())
            .update(self.roles_file.map_or("", RolesFile::text).as_bytes())
            .update(survey.digest.as_bytes())
            .finalize()
            .to_hex()
            .to_string();
        let path = self.path.to_owned();
        let name_of = |node: &Node<'_, '_>| Some(node.text("name")?.value.to_owned());
        let target_names = root.tables("target").iter().filter_map(name_of).collect();
        let is_unassigned =
            |role: &&String| !self.loads_combinations && !self.roles.is_assigned(role);
        let used = targets.iter().flat_map(|target| target.roles.iter().map(|(role, _)| role));
        let unassigned_roles = used.filter(is_unassigned).cloned().collect();
        // Problems would be repeated for each combination.
        let section = section.filter(|_| self.loads_combinations && problems.is_empty());
        let (targets, select) = match section {
            Some(section) => {
                let base = targets.first()?;
                (combinations::expand(base, &section), Some(section.plan))
            }
            None => (targets, None),
        };
        media::check(&targets, &survey, root, problems);
        let mut warnings = ignored_settings::warnings(&targets);
        warnings.extend(ignored_settings::history_warnings(&targets, &survey));
        Some(Suite {
            name,
            path,
            roles_file: self.roles_file.map(|file| file.path.clone()),
            settings,
            warnings,
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
            part_digests: digests::part_digests(root, self.folder()),
            digest,
            env_file: EnvFile::default(),
            project: None,
        })
    }

    /// Renders request bodies of services with the first case and reports invalid JSON.
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
            // Templates that cannot be rendered have been reported.
            let Some(message) = body.ok().and_then(|body| service.body_error(&body)) else {
                continue;
            };
            let named = |node: &&Node<'_, '_>| {
                node.text("name").is_some_and(|name| target.name == name.value)
            };
            let nodes = root.tables("target");
            let Some(value) = nodes.iter().find(named).and_then(|node| node.get("body")) else {
                continue;
            };
            problems.at(value.span(), message).with_hint(
                "put strings in quotation marks, as in `{\"question\": \"{{ prompt }}\"}`, but no other values",
            );
        }
    }

    /// Returns whether a target is selected. The caller reports unknown names.
    pub(crate) fn is_selected(&self, target: &Node<'_, '_>) -> bool {
        let name = target.text("name").map(|name| name.value);
        let selects_all = self.only.is_empty() || name.is_none();
        selects_all || self.only.iter().any(|selected| Some(selected.as_str()) == name)
    }

    /// Returns the folder of the suite file, which file names are relative to.
    pub(crate) fn folder(&self) -> &Path {
        folder(self.path)
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
                    .at(file.span, "[cases] has both `file` and `inline`")
                    .with_hint("keep one of them");
                return None;
            }
            (Some(file), None) => {
                match CaseSource::open(&self.folder().join(file.value), self.folder()) {
                    Ok(source) => source,
                    Err(problem) if problem.position.is_none() => {
                        // A problem of the whole file is reported where the suite names it.
                        let shown = format!("{}: {}", file.value, problem.message);
                        problems.at(file.span, shown).hint = problem.hint;
                        return None;
                    }
                    Err(problem) => {
                        problems.extend([problem]);
                        return None;
                    }
                }
            }
            (None, Some(_)) => {
                let row = |case: &Node<'_, '_>| CaseRow {
                    start: 0,
                    position: Some(Box::new(SourcePosition::of(self.text, case.span.clone()))),
                    fields: case.to_json(),
                };
                CaseSource::inline(self.path, self.folder(), inline.iter().map(row).collect())
            }
            (None, None) => {
                problems
                    .at(node.span.clone(), "[cases] has neither `file` nor `inline`")
                    .with_hint("write `file = \"cases.jsonl\"`, or [[cases.inline]] tables");
                return None;
            }
        };
        let mut survey = source.survey();
        let has_problems = !survey.problems.is_empty();
        problems.extend(survey.problems.drain(..));
        if survey.ids.is_empty() && !has_problems {
            let span = node.text("file").map_or(node.span.clone(), |file| file.span);
            problems.at(span, "no cases").with_hint("add at least one case");
            return None;
        }
        Some((source, survey))
    }
}

/// Returns the folder of a suite file.
pub(crate) fn folder(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

pub(crate) fn folder_name(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let name = absolute.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    name.unwrap_or("suite").to_owned()
}
