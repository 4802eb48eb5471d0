//! `[target_defaults]`: keys of all targets that do not set them.

use super::spec::{Field, TARGET, TARGET_DEFAULTS, TargetType};
use super::targets::{EXCLUSIVE_KEYS, is_step_key};
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

type Value<'t> = Spanned<DeValue<'t>>;

/// Adds the defaults to all targets for whose type they are allowed. Positions remain those of the defaults.
pub(super) fn apply(root: &mut DeTable<'_>) {
    let Some(DeValue::Table(defaults)) = root.get("target_defaults").map(Spanned::get_ref) else {
        return;
    };
    let defaults = defaults.clone();
    let targets = root.get_mut("target").map(Spanned::get_mut);
    let Some(DeValue::Array(targets)) = targets else { return };
    for target in targets.iter_mut() {
        if let DeValue::Table(target) = target.get_mut() {
            add_missing(target, &defaults);
        }
    }
}

fn add_missing<'t>(target: &mut DeTable<'t>, defaults: &DeTable<'t>) {
    let kind_keys = || TARGET_DEFAULTS.fields().filter(|field| is_kind(field.implies));
    if !kind_keys().any(|field| target.contains_key(field.name)) {
        kind_keys().for_each(|field| add(target, defaults, field.name));
    }
    let Some(target_type) = target_type(target, defaults) else { return };
    let excludes = |key: &str| {
        let mut pairs = EXCLUSIVE_KEYS.iter().filter(|keys| keys.contains(&key));
        pairs.any(|keys| keys.iter().any(|key| target.contains_key(*key)))
    };
    let is_allowed = |field: &&Field| match target_type {
        TargetType::Chain if is_step_key(field) => false,
        _ => field.target_types.is_empty() || field.target_types.contains(&target_type),
    };
    let others = TARGET_DEFAULTS.fields().filter(|field| !is_kind(field.implies));
    let added: Vec<&str> =
        others.filter(is_allowed).map(|field| field.name).filter(|key| !excludes(key)).collect();
    added.into_iter().for_each(|key| add(target, defaults, key));
}

/// Returns whether a key determines the type of a target.
fn is_kind(implies: Option<TargetType>) -> bool {
    implies.is_some_and(|implied| implied != TargetType::ToolModel)
}

/// Returns the type that a target has with the defaults. Reading reports contradictory keys.
fn target_type(target: &DeTable<'_>, defaults: &DeTable<'_>) -> Option<TargetType> {
    let implied = TARGET
        .fields()
        .filter(|field| is_kind(field.implies) && target.contains_key(field.name))
        .filter_map(|field| field.implies)
        .min()?;
    let gives_tools = |table: &DeTable<'_>| {
        let mut fields = TARGET.fields();
        fields.any(|field| {
            field.implies == Some(TargetType::ToolModel) && table.contains_key(field.name)
        })
    };
    Some(match implied {
        TargetType::Model if gives_tools(target) || gives_tools(defaults) => TargetType::ToolModel,
        other => other,
    })
}

fn add<'t>(target: &mut DeTable<'t>, defaults: &DeTable<'t>, key: &'static str) {
    if let Some(value) = defaults.get(key)
        && !target.contains_key(key)
    {
        insert(target, key, value.clone());
    }
}

/// Inserts a value at its own position.
pub(super) fn insert<'t>(table: &mut DeTable<'t>, key: &'static str, value: Value<'t>) {
    let span: Range<usize> = value.span();
    table.insert(Spanned::new(span, key.into()), value);
}
