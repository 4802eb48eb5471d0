//! `[roles]`: who fills which role, and which targets have roles.

use super::tree::{At, Node};
use crate::problem::{Problems, suggest};
use std::collections::{BTreeMap, BTreeSet};

/// How a target names a role in the place of a model.
const PREFIX: &str = "role/";

/// Who fills which role.
#[derive(Debug)]
pub(super) struct Roles<'a> {
    /// By `[roles]`.
    filled: BTreeMap<&'a str, At<&'a str>>,
    /// The first candidates of `[select.roles]`.
    first: BTreeMap<&'a str, At<&'a str>>,
    /// Candidates go before `[roles]`, as they are what a search is about.
    searched: bool,
    /// A first candidate stands in where `[roles]` names nobody: nothing is run.
    may_stand_in: bool,
    has_select: bool,
}

impl<'a> Roles<'a> {
    /// Reads `[roles]`, and who could fill the others.
    pub(super) fn read(root: &Node<'a, '_>, searched: bool, may_stand_in: bool) -> Roles<'a> {
        let texts = |node: Node<'a, '_>| -> BTreeMap<&'a str, At<&'a str>> {
            let named = |key: At<&'a str>| Some((key.value, node.text(key.value)?));
            node.keys().into_iter().filter_map(named).collect()
        };
        let firsts = |node: Node<'a, '_>| -> BTreeMap<&'a str, At<&'a str>> {
            let named =
                |key: At<&'a str>| Some((key.value, node.texts(key.value)?.into_iter().next()?));
            node.keys().into_iter().filter_map(named).collect()
        };
        let select = root.table("select");
        Roles {
            filled: root.table("roles").map(texts).unwrap_or_default(),
            first: select
                .as_ref()
                .and_then(|select| select.table("roles"))
                .map(firsts)
                .unwrap_or_default(),
            searched,
            may_stand_in,
            has_select: select.is_some(),
        }
    }

    /// Whether `[roles]` names somebody for it.
    pub(super) fn has(&self, role: &str) -> bool {
        self.filled.contains_key(role)
    }

    /// Who fills a role, if anybody does.
    pub(super) fn filler(&self, role: &str) -> Option<&At<&'a str>> {
        let candidate = self.first.get(role);
        if self.searched && candidate.is_some() {
            return candidate;
        }
        self.filled.get(role).or(candidate.filter(|_| self.may_stand_in))
    }

    /// Who fills a role; a problem at its place when nobody does.
    pub(super) fn fill(&self, role: &At<&str>, problems: &mut Problems<'_>) -> Option<At<&'a str>> {
        if let Some(filler) = self.filler(role.value) {
            return Some(filler.clone());
        }
        if role.value.trim().is_empty() {
            problems.at(role.span.clone(), "a role's name must not be empty");
            return None;
        }
        let name = role.value;
        let search = match (self.searched, self.has_select) {
            (true, _) => ", or its candidates under [select.roles]",
            (false, true) => ", or let `bakeoff select` find who is best",
            (false, false) => "",
        };
        let known = self.filled.keys().copied();
        let similar = suggest(name, known).filter(|hint| hint.starts_with("did you mean"));
        let hint = match similar.as_deref().and_then(|hint| hint.split('`').nth(1)) {
            Some(similar) => format!("[roles] has `{similar}`: the names must be the same"),
            None => format!("write `{name} = \"provider/model\"` under [roles]{search}"),
        };
        problems.at(role.span.clone(), format!("nobody fills the role `{name}`")).with_hint(hint);
        None
    }

    /// The model that is meant: who fills the role, where a role is named.
    pub(super) fn who(
        &self,
        model: At<&'a str>,
        problems: &mut Problems<'_>,
    ) -> Option<At<&'a str>> {
        match role(&model) {
            Some(role) => self.fill(&role, problems),
            None => Some(model),
        }
    }
}

/// The role that stands in the place of a model, if one does.
pub(super) fn role<'a>(model: &At<&'a str>) -> Option<At<&'a str>> {
    let value = model.value.strip_prefix(PREFIX)?;
    Some(At { value, span: model.span.clone() })
}

/// The roles of a target, each where it is first named.
pub(super) fn roles_of<'a>(target: &Node<'a, '_>) -> Vec<At<&'a str>> {
    let of_model = |node: &Node<'a, '_>| node.text("model").as_ref().and_then(role);
    let steps = target.tables("chain");
    let of_steps = steps.iter().filter_map(|step| step.text("role").or_else(|| of_model(step)));
    let listed = target.texts("roles").unwrap_or_default();
    let mut seen = BTreeSet::new();
    let all = of_steps.chain(of_model(target)).chain(listed);
    all.filter(|role| seen.insert(role.value)).collect()
}

/// The environment variable that names who fills a role.
pub(super) fn variable(role: &str) -> String {
    let plain = |letter: char| match letter.to_ascii_uppercase() {
        letter @ ('A'..='Z' | '0'..='9') => letter,
        _ => '_',
    };
    format!("BAKEOFF_MODEL_{}", role.chars().map(plain).collect::<String>())
}
