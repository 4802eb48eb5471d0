//! File with `[roles]`, as `bakeoff select --apply` writes it, merged into a suite.
//!
//! The file is parsed at an offset behind the text of the suite, so that every position belongs to one of the two
//! files, and models of the file can be reported like those of the suite.

use super::roles::roles_of;
use super::spec::SUITE_FILE;
use super::suite::{parse, read_as};
use super::tree::{Node, validate_present};
use crate::problem::{Problem, Problems, suggest};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Tables that such a file may have.
const TABLES: [&str; 3] = ["roles", "models", "sim"];

/// A file with `[roles]`.
pub(super) struct RolesFile {
    pub(super) path: PathBuf,
    /// Text of the file, after as many spaces as the suite has bytes.
    padded: String,
    offset: usize,
}

impl RolesFile {
    /// Reads the file, whose positions follow those of a suite with this length.
    pub(super) fn read(path: &Path, offset: usize) -> Result<RolesFile, Problem> {
        let hint = "`bakeoff select --apply FILE` writes such a file";
        let text = read_as("roles file", path, [hint; 2])?;
        let padded = format!("{}{text}", " ".repeat(offset));
        Ok(RolesFile { path: path.to_owned(), padded, offset })
    }

    /// Returns the text of the file.
    pub(super) fn text(&self) -> &str {
        &self.padded[self.offset..]
    }

    /// Adds the tables of the file to those of a suite: its roles replace those of the suite, its models only complete
    /// them. Fails after a syntax error.
    pub(super) fn merge<'t>(&'t self, root: &mut DeTable<'t>, problems: &mut Problems<'_>) -> bool {
        let Some(tree) = parse(&self.padded, problems) else { return false };
        let mut file = tree.into_inner();
        validate_present(&file, &SUITE_FILE, "the roles file", problems);
        for (key, _) in file.iter().filter(|(key, _)| !TABLES.contains(&key.get_ref().as_ref())) {
            if SUITE_FILE.field(key.get_ref()).is_some() {
                problems
                    .at(key.span(), format!("unexpected `{}` in a roles file", key.get_ref()))
                    .with_hint("it has only [roles], [models] and [sim]; other tables belong into the suite");
            }
        }
        if file.get("roles").is_none() {
            problems
                .at(self.offset..self.offset, "no [roles]")
                .with_hint("write `solver = \"provider/model\"` under [roles]");
        }
        self.check_names(root, &file, problems);
        for name in TABLES {
            let Some((key, value)) = file.remove_entry(name) else { continue };
            match (root.get_mut(name).map(Spanned::get_mut), value.into_inner()) {
                (Some(DeValue::Table(of_suite)), DeValue::Table(table)) => {
                    for (key, value) in table {
                        if name == "roles" {
                            of_suite.remove(&key);
                        }
                        of_suite.entry(key).or_insert(value);
                    }
                }
                // The validation reports a value that is not a table.
                (Some(_), _) => {}
                (None, value) => {
                    let span = key.span();
                    root.insert(key, Spanned::new(span, value));
                }
            }
        }
        true
    }

    /// Reports roles that neither a target nor the suite has.
    fn check_names(&self, root: &DeTable<'_>, file: &DeTable<'_>, problems: &mut Problems<'_>) {
        let (root, file) = (Node::new(root, 0..0), Node::new(file, 0..0));
        let targets = root.tables("target");
        let mut known: BTreeSet<&str> =
            targets.iter().flat_map(roles_of).map(|role| role.value).collect();
        let assigned = root.table("roles").map(|roles| roles.keys()).unwrap_or_default();
        known.extend(assigned.iter().map(|role| role.value));
        let roles = file.table("roles").map(|roles| roles.keys()).unwrap_or_default();
        for role in roles.into_iter().filter(|role| !known.contains(role.value)) {
            let message = format!("no target of the suite has the role `{}`", role.value);
            problems.at(role.span, message).hint = suggest(role.value, known.iter().copied());
        }
    }
}
