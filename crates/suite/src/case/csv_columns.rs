//! Columns of a CSV file of cases: fields, and parameters of checks.

use crate::problem::suggest;
use crate::spec::{CHECK_COMMON, ValueType, kind_fields};
use bakeoff_check::{KINDS, KindInfo};
use serde_json::{Map, Value, json};

/// Prefix of the columns with checks.
const PREFIX: &str = "check.";

/// Columns of a file, in their order.
#[derive(Debug)]
pub(super) struct CsvColumns(Vec<Column>);

#[derive(Debug)]
enum Column {
    /// Field of the case.
    Field(String),
    /// Parameter of a check of this kind.
    Parameter { kind: &'static KindInfo, key: &'static str, cells: CellType },
    /// Whether there is a check of this kind, which needs no parameter.
    Kind(&'static KindInfo),
}

/// Type of the cells of a column.
#[derive(Debug, Clone, Copy)]
enum CellType {
    /// String as it is.
    Text,
    /// JSON list, or a string as a list with one item.
    Texts,
    /// JSON value.
    Json,
}

/// Unusable column.
#[derive(Debug)]
pub(super) struct ColumnError {
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

impl CsvColumns {
    /// Reads the header.
    pub(super) fn read(names: &[String]) -> Result<CsvColumns, ColumnError> {
        names.iter().map(|name| Column::read(name)).collect::<Result<_, _>>().map(CsvColumns)
    }

    /// Returns the fields of a case; its checks are the field `checks`.
    pub(super) fn fields(&self, record: &csv::StringRecord) -> Result<Map<String, Value>, String> {
        let mut fields = Map::new();
        let mut checks: Vec<(&KindInfo, Map<String, Value>)> = Vec::new();
        for (column, cell) in self.0.iter().zip(record) {
            match column {
                Column::Field(name) => {
                    fields.insert(name.clone(), cell.into());
                }
                Column::Parameter { kind, key, cells } if !cell.trim().is_empty() => {
                    let table = table_of(kind, &mut checks);
                    table.insert((*key).to_owned(), cells.value(cell));
                }
                Column::Parameter { .. } => {}
                Column::Kind(kind) => match cell.trim() {
                    "true" => {
                        table_of(kind, &mut checks);
                    }
                    "" | "false" => {}
                    other => {
                        let name = kind.name;
                        return Err(format!(
                            "`{PREFIX}{name}` must be true or false, not {other:?}"
                        ));
                    }
                },
            }
        }
        checks.retain(|(kind, table)| self.is_complete(kind, table));
        if !checks.is_empty() {
            let tables = checks.into_iter().map(|(_, table)| Value::Object(table));
            fields.insert("checks".to_owned(), tables.collect());
        }
        Ok(fields)
    }

    /// Returns whether a case has a check: a file with a column for its required parameter leaves the cell empty in
    /// cases without the check.
    fn is_complete(&self, kind: &KindInfo, table: &Map<String, Value>) -> bool {
        let main = main_parameter(kind);
        !self.0.iter().any(|column| match column {
            Column::Parameter { kind: other, key, .. } => {
                other.name == kind.name && Some(*key) == main && !table.contains_key(*key)
            }
            _ => false,
        })
    }
}

impl Column {
    fn read(name: &str) -> Result<Column, ColumnError> {
        let Some(check) = name.strip_prefix(PREFIX) else {
            return Ok(Column::Field(name.to_owned()));
        };
        let (word, key) = match check.split_once('.') {
            Some((word, key)) => (word, Some(key)),
            None => (check, None),
        };
        let Some(kind) = KindInfo::find(word) else {
            return Err(ColumnError {
                message: format!("unknown check kind `{word}` in the column `{name}`"),
                hint: suggest(word, KINDS.iter().map(|kind| kind.name)),
            });
        };
        let keys = parameters(kind);
        let Some(key) = key.or_else(|| main_parameter(kind)) else {
            return match kind.parameters.first() {
                None => Ok(Column::Kind(kind)),
                Some(first) => Err(ColumnError {
                    message: format!("the column `{name}` names no parameter"),
                    hint: Some(format!("write, for example, `{name}.{}`", first.name)),
                }),
            };
        };
        match keys.iter().find(|(known, _)| *known == key) {
            Some((key, cells)) => Ok(Column::Parameter { kind, key, cells: *cells }),
            None => Err(ColumnError {
                message: format!(
                    "unknown key `{key}` of the check `{word}` in the column `{name}`"
                ),
                hint: suggest(key, keys.iter().map(|(known, _)| *known)),
            }),
        }
    }
}

/// Returns the keys of a check except `kind`.
fn parameters(kind: &'static KindInfo) -> Vec<(&'static str, CellType)> {
    let common = CHECK_COMMON.fields().filter(|field| field.name != "kind");
    let common = common.map(|field| (field.name, CellType::of(&field.value_type)));
    let specific = kind_fields(kind);
    common
        .chain(specific.iter().map(|field| (field.name, CellType::of(&field.value_type))))
        .collect()
}

/// Returns the parameter in a column that names only the kind: the first one, if it is required.
fn main_parameter(kind: &KindInfo) -> Option<&'static str> {
    kind.parameters.first().filter(|first| first.required).map(|first| first.name)
}

fn table_of<'a>(
    kind: &'static KindInfo,
    checks: &'a mut Vec<(&'static KindInfo, Map<String, Value>)>,
) -> &'a mut Map<String, Value> {
    let found = checks.iter().position(|(other, _)| other.name == kind.name);
    let index = found.unwrap_or(checks.len());
    if found.is_none() {
        let table = Map::from_iter([("kind".to_owned(), kind.name.into())]);
        checks.push((kind, table));
    }
    &mut checks[index].1
}

impl CellType {
    fn of(value_type: &ValueType) -> CellType {
        match value_type {
            ValueType::Text | ValueType::Template | ValueType::Choice(_) => CellType::Text,
            ValueType::TextList { .. } => CellType::Texts,
            _ => CellType::Json,
        }
    }

    /// Returns the value of a cell. Values of a wrong type are reported with the other problems of checks.
    fn value(self, cell: &str) -> Value {
        let json = || serde_json::from_str(cell.trim()).ok();
        match self {
            CellType::Text => cell.into(),
            CellType::Texts => json().filter(Value::is_array).unwrap_or_else(|| json!([cell])),
            CellType::Json => json().unwrap_or_else(|| cell.into()),
        }
    }
}
