//! Reading and validation of `[select]`.

use super::{SelectBudget, SelectMeasure, SelectObjective, SelectPlan};
use crate::models::NamedModel;
use crate::pricing::model_prices;
use crate::problem::{Problem, Problems, suggest};
use crate::resolve;
use crate::roles::roles_of;
use crate::suite::LoadContext;
use crate::tree::{Node, SourceText};
use bakeoff_core::NanoDollars;
use bakeoff_llm::{Model, PriceSource};
use bakeoff_select::SelectorOptions;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

/// Maximum number of combinations of a search.
const MAX_COMBINATIONS: usize = 100_000;

/// Plan of a search with its resolved candidates.
pub(crate) struct SelectSection {
    pub(crate) plan: SelectPlan,
    pub(crate) candidates: BTreeMap<String, RoleCandidate>,
}

/// Candidate for a role.
pub(crate) struct RoleCandidate {
    /// `provider/model`.
    pub(crate) label: String,
    /// Model; absent for programs, which make the calls themselves.
    pub(crate) model: Option<Model>,
    pub(crate) prices: PriceSource,
}

/// Returns the name of the target whose roles are searched, if it is unambiguous.
pub(crate) fn target_name(root: &Node<'_, '_>) -> Option<String> {
    let select = root.table("select")?;
    let named = select.text("target").map(|name| name.value);
    let nodes = root.tables("target");
    let users = nodes.iter().filter(|node| !roles_of(node).is_empty());
    let mut names = users.filter_map(|node| node.text("name")).map(|name| name.value);
    let only = match (names.next(), names.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    };
    named.or(only).map(str::to_owned)
}

/// Creates the problem of a suite without `[select]`.
pub(crate) fn missing_section(path: &Path, root: Option<&Node<'_, '_>>) -> Problem {
    let targets = root.map(|root| root.tables("target")).unwrap_or_default();
    let has_roles = targets.iter().any(|node| !roles_of(node).is_empty());
    let hint = match has_roles {
        true => {
            "add [select.roles] with candidates for each role, such as `solver = [\"small\", \"openai/gpt-4o-mini\"]`"
        }
        false => {
            "give a target a role, such as `model = \"role/solver\"`, and add [select.roles] with its \
             candidates: `solver = [\"small\", \"openai/gpt-4o-mini\"]`"
        }
    };
    Problem {
        code: None,
        message: "the suite has no [select] table".to_owned(),
        path: path.to_owned(),
        position: None,
        hint: Some(hint.to_owned()),
    }
}

/// Reads `[select]`. API keys of candidates are needed only when combinations are loaded.
pub(crate) fn read(
    root: &Node<'_, '_>,
    models: &BTreeMap<String, NamedModel>,
    context: &LoadContext<'_>,
    problems: &mut Problems<'_>,
) -> Option<SelectSection> {
    let node = root.table("select")?;
    let reader = SelectReader { node: &node, models, context };
    let objective = reader.objective(problems);
    let method = node.text("method").map_or("auto", |method| method.value);
    reader.check_method(method, problems);
    let proposer = reader.proposer(problems);
    let target = reader.target(root, problems)?;
    let roles = reader.roles(&target, problems);
    let candidates = reader.candidates(&target, &roles, problems);
    Some(SelectSection {
        plan: SelectPlan {
            target: target.text("name")?.value.to_owned(),
            roles,
            describe: node.text_map("describe").into_iter().collect(),
            proposer,
            method: method.to_owned(),
            confidence: node.number("confidence"),
            epsilon: node.number("epsilon"),
            objective,
            budget: reader.budget(),
            options: reader.options(),
        },
        candidates,
    })
}

struct SelectReader<'a, 't> {
    node: &'a Node<'a, 't>,
    models: &'a BTreeMap<String, NamedModel>,
    context: &'a LoadContext<'a>,
}

impl SelectReader<'_, '_> {
    fn target<'r, 't>(
        &self,
        root: &Node<'r, 't>,
        problems: &mut Problems<'_>,
    ) -> Option<Node<'r, 't>> {
        let nodes = root.tables("target");
        let name = |node: &Node<'r, 't>| node.text("name").map(|name| name.value);
        let users: Vec<&Node<'_, '_>> =
            nodes.iter().filter(|node| !roles_of(node).is_empty()).collect();
        let names: Vec<&str> = users.iter().filter_map(|node| name(node)).collect();
        let hint = "give a target a role with `model = \"role/solver\"`, `role` in a chain step, or `roles`";
        let Some(named) = self.node.text("target") else {
            match users.as_slice() {
                [only] => return Some((*only).clone()),
                [] => problems.at(self.node.span.clone(), "no target has a role").with_hint(hint),
                _ => problems
                    .at(self.node.span.clone(), "several targets have roles")
                    .with_hint(format!("add `target = …`, one of `{}`", names.join("`, `"))),
            };
            return None;
        };
        match nodes.iter().find(|node| name(node) == Some(named.value)) {
            Some(found) if roles_of(found).is_empty() => {
                let message = format!("the target `{}` has no roles", named.value);
                problems.at(named.span, message).with_hint(hint);
                None
            }
            Some(found) => Some(found.clone()),
            None => {
                let message = format!("there is no target `{}`", named.value);
                problems.at(named.span, message).hint = suggest(named.value, names);
                None
            }
        }
    }

    /// Reads the roles with their candidates.
    fn roles(
        &self,
        target: &Node<'_, '_>,
        problems: &mut Problems<'_>,
    ) -> Vec<(String, Vec<String>)> {
        let used: Vec<&str> = roles_of(target).iter().map(|role| role.value).collect();
        let target_name = target.text("name").map_or("", |name| name.value);
        let unknown = |key: &SourceText<'_>, problems: &mut Problems<'_>| {
            let message = format!("the target `{target_name}` has no role `{}`", key.value);
            problems.at(key.span.clone(), message).hint = suggest(key.value, used.iter().copied());
        };
        if let Some(describe) = self.node.table("describe") {
            let keys = describe.keys();
            keys.iter()
                .filter(|key| !used.contains(&key.value))
                .for_each(|key| unknown(key, problems));
        }
        let Some(table) = self.node.table("roles") else { return Vec::new() };
        let mut roles = Vec::new();
        for key in table.keys() {
            let Some(candidates) = table.texts(key.value) else { continue };
            if !used.contains(&key.value) {
                unknown(&key, problems);
            }
            if candidates.is_empty() {
                problems
                    .at(key.span.clone(), format!("role `{}` has no candidates", key.value))
                    .with_hint("add models, or remove the role and assign a model under [roles]");
            }
            let mut seen = BTreeSet::new();
            for duplicate in candidates.iter().filter(|one| !seen.insert(one.value)) {
                let message =
                    format!("duplicate candidate `{}` of role `{}`", duplicate.value, key.value);
                problems.at(duplicate.span.clone(), message);
            }
            let names = candidates.iter().map(|candidate| candidate.value.to_owned());
            roles.push((key.value.to_owned(), names.collect::<Vec<_>>()));
        }
        if roles.is_empty() {
            problems.at(table.span.clone(), "no role has candidates").with_hint(format!(
                "write `{} = [\"sim/echo\", \"openai/gpt-4o-mini\"]`",
                used.first().unwrap_or(&"solver")
            ));
        }
        // For selected targets, the reader of targets reports roles without a model.
        if !self.context.is_selected(target) {
            for role in roles_of(target) {
                let has_candidates = roles.iter().any(|(name, _)| name == role.value);
                if !has_candidates {
                    self.context.roles.require(&role, problems);
                }
            }
        }
        let count = roles.iter().map(|(_, names)| names.len()).try_fold(1, usize::checked_mul);
        if count.is_none_or(|count| count > MAX_COMBINATIONS) {
            let count = count.map_or("too many".to_owned(), |count| count.to_string());
            problems
                .at(
                    table.span.clone(),
                    format!("{count} combinations; the maximum is {MAX_COMBINATIONS}"),
                )
                .with_hint("remove candidates, or assign fixed models under [roles]");
        }
        roles
    }

    /// Resolves the candidates and reports unknown ones.
    fn candidates(
        &self,
        target: &Node<'_, '_>,
        roles: &[(String, Vec<String>)],
        problems: &mut Problems<'_>,
    ) -> BTreeMap<String, RoleCandidate> {
        let Some(table) = self.node.table("roles") else { return BTreeMap::new() };
        let mut candidates = BTreeMap::new();
        let mut seen = BTreeSet::new();
        let lists = roles.iter().filter_map(|(role, _)| table.texts(role));
        for candidate in lists.flatten().filter(|candidate| seen.insert(candidate.value)) {
            let (name, label) = (candidate.value, resolve::label(&candidate, self.models));
            let model = if target.get("agent").is_some() || target.get("url").is_some() {
                // Agents and services have their own model names.
                None
            } else if target.get("command").is_some() {
                match resolve::find(candidate, self.models, problems) {
                    Some(_) => None,
                    None => continue,
                }
            } else {
                match self.model(candidate, problems) {
                    Some(model) => Some(model),
                    None => continue,
                }
            };
            let prices = model_prices(name, self.models);
            candidates.insert(name.to_owned(), RoleCandidate { label, model, prices });
        }
        candidates
    }

    /// Resolves a model; without its API key if the search is not run.
    fn model(&self, name: SourceText<'_>, problems: &mut Problems<'_>) -> Option<Model> {
        let environment = self.context.environment;
        let lenient = |name: &str| environment(name).or_else(|| Some("not needed".to_owned()));
        match self.context.loads_combinations {
            true => resolve::resolve_in(name, self.models, environment, problems),
            false => resolve::resolve_in(name, self.models, &lenient, problems),
        }
    }

    fn proposer(&self, problems: &mut Problems<'_>) -> Option<(String, Model)> {
        let name = self.node.text("proposer")?;
        let label = name.value.to_owned();
        Some((label, self.model(name, problems)?))
    }

    /// Reports missing keys that a method requires.
    fn check_method(&self, method: &str, problems: &mut Problems<'_>) {
        let needed = match method {
            "threshold_se" => Some(("threshold", "the sufficient mean score: `threshold = 0.75`")),
            "lm_proposal" => {
                Some(("proposer", "the proposing model: `proposer = \"openai/gpt-4o\"`"))
            }
            _ => None,
        };
        if let Some((key, hint)) = needed.filter(|(key, _)| self.node.get(key).is_none()) {
            let span = self.node.get("method").map_or(self.node.span.clone(), |value| value.span());
            problems.at(span, format!("`{method}` needs `{key}`")).with_hint(format!("add {hint}"));
        }
    }

    fn objective(&self, problems: &mut Problems<'_>) -> SelectObjective {
        let number = |name| self.node.number(name);
        let weight = ["cost_weight", "latency_weight"]
            .into_iter()
            .find(|name| number(name).is_some_and(|weight| weight > 0.0));
        let bounds = ["cheapest_within", "max_task_usd"];
        let given = bounds.into_iter().filter(|name| self.node.get(name).is_some());
        let all: Vec<&str> = weight.into_iter().chain(given).collect();
        if let [first, second, ..] = all.as_slice() {
            let span = self.node.get(second).map_or(self.node.span.clone(), |value| value.span());
            problems
                .at(span, format!("`{first}` and `{second}` cannot be combined"))
                .with_hint("use only one of the weights, `cheapest_within` and `max_task_usd`");
        }
        let measure = match self.node.text("objective").map(|objective| objective.value) {
            Some("pass_rate") => SelectMeasure::PassRate,
            _ => SelectMeasure::Score,
        };
        SelectObjective {
            measure,
            cost_weight: number("cost_weight"),
            latency_weight: number("latency_weight"),
            cheapest_within: number("cheapest_within"),
            max_task_usd: number("max_task_usd"),
        }
    }

    fn budget(&self) -> SelectBudget {
        SelectBudget {
            cost: self
                .node
                .number("max_cost_usd")
                .map(|dollars| NanoDollars((dollars * 1e9).round() as i64)),
            cells: self.node.integer("max_cells").and_then(|cells| u64::try_from(cells).ok()),
            time: self
                .node
                .number("deadline")
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
        }
    }

    fn options(&self) -> SelectorOptions {
        let number = |name| self.node.number(name);
        let count = |name| self.node.integer(name).and_then(|number| usize::try_from(number).ok());
        let mut options = SelectorOptions::default();
        options.fraction = number("fraction");
        options.threshold = number("threshold");
        options.width = number("width");
        options.first = count("first");
        options.growth = number("growth");
        options.curiosity = number("curiosity");
        options.batch = count("batch");
        options.iterations = count("iterations");
        options.restarts = count("restarts");
        options.patience = count("patience");
        options
    }
}
