//! How rows come out: the fields of the input, the answers, and why there is none.

use super::ladder::Answer;
use crate::error::Error;
use crate::row::{Row, plain};
use crate::rows::RowFormat;
use crate::task::Task;
use serde_json::Value;
use std::path::Path;

/// The field that says why a row has no answer.
pub(super) const ERROR: &str = "error";

/// How rows are written.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    format: RowFormat,
    /// Fields of the input, in the order of their first appearance.
    columns: Vec<String>,
    /// Fields of an answer.
    answers: Vec<String>,
    into: Option<String>,
}

impl Layout {
    /// # Errors
    ///
    /// When the name of the file says nothing, or an answer would hide a field of the input.
    pub(super) fn new(path: &Path, columns: Vec<String>, task: &Task) -> Result<Layout, Error> {
        let format = RowFormat::of(path).filter(|format| *format != RowFormat::JsonArray);
        let format = format.ok_or_else(|| Error::UnknownOutput(path.to_owned()))?;
        let answers = task.output.iter().map(|field| field.name.clone()).collect();
        let layout = Layout { format, columns, answers, into: task.into.clone() };
        let own = layout.own();
        match layout.columns.iter().find(|column| own.contains(column)) {
            Some(column) => Err(Error::Collision(column.clone())),
            None => Ok(layout),
        }
    }

    /// What stands beside the fields of the input.
    fn own(&self) -> Vec<String> {
        let fields = self.answers.iter().map(String::as_str).chain([ERROR]);
        match &self.into {
            None => fields.map(str::to_owned).collect(),
            Some(into) if self.format == RowFormat::Csv => {
                fields.map(|field| format!("{into}.{field}")).collect()
            }
            Some(into) => vec![into.clone()],
        }
    }

    /// What stands before the first row.
    pub(super) fn header(&self) -> std::io::Result<Vec<u8>> {
        match self.format {
            RowFormat::Csv => record(self.columns.iter().cloned().chain(self.own())),
            _ => Ok(Vec::new()),
        }
    }

    /// A row as it is written.
    pub(super) fn row(
        &self,
        row: &Row,
        answer: &Result<Answer, String>,
    ) -> std::io::Result<Vec<u8>> {
        match self.format {
            RowFormat::Csv => {
                let cell = |json: &str| if json == "null" { String::new() } else { plain(json) };
                // In the order of the columns, as most rows are, each is found at once.
                let mut rest = row.fields.iter().peekable();
                let mut value = |name: &String| match rest.next_if(|(own, _)| own == name) {
                    Some((_, value)) => cell(value.get()),
                    None => row.get(name).map_or(String::new(), cell),
                };
                let input = self.columns.iter().map(&mut value);
                let own = (0..self.answers.len()).map(|place| match answer {
                    Ok(values) => {
                        values.get(place).map_or(String::new(), |value| cell(value.get()))
                    }
                    Err(_) => String::new(),
                });
                let error = answer.as_ref().err().cloned().unwrap_or_default();
                record(input.chain(own).chain([error]))
            }
            _ => Ok(self.json(row, answer).into_bytes()),
        }
    }

    fn json(&self, row: &Row, answer: &Result<Answer, String>) -> String {
        let mut line = String::from("{");
        let add = |line: &mut String, name: &str, value: &str| {
            if !line.ends_with('{') {
                line.push(',');
            }
            line.push_str(&Value::from(name).to_string());
            line.push(':');
            // One line per row, however it was written: within JSON, line ends are white space.
            match value.contains(['\n', '\r']) {
                true => line.push_str(&value.replace(['\n', '\r'], " ")),
                false => line.push_str(value),
            }
        };
        row.fields.iter().for_each(|(name, value)| add(&mut line, name, value.get()));
        let mut own = String::from("{");
        for (place, name) in self.answers.iter().enumerate() {
            let value = answer.as_ref().ok().and_then(|values| values.get(place));
            add(&mut own, name, value.map_or("null", |value| value.get()));
        }
        let error =
            answer.as_ref().err().map_or(Value::Null, |reason| Value::from(reason.as_str()));
        add(&mut own, ERROR, &error.to_string());
        match &self.into {
            Some(into) => add(&mut line, into, &format!("{own}}}")),
            None => {
                if line.len() > 1 {
                    line.push(',');
                }
                line.push_str(&own[1..]);
            }
        }
        line.push_str("}\n");
        line
    }
}

fn record(cells: impl Iterator<Item = String>) -> std::io::Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(cells)?;
    writer.into_inner().map_err(csv::IntoInnerError::into_error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{Field, FieldType};
    use serde_json::value::RawValue;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn task(into: Option<&str>) -> Task {
        let fields =
            vec![Field::new("label", FieldType::String), Field::new("n", FieldType::Number)];
        Task { into: into.map(str::to_owned), ..Task::new("x", fields) }
    }

    fn written(name: &str, into: Option<&str>) -> String {
        let columns = vec!["a".to_owned(), "b".to_owned()];
        let layout = Layout::new(Path::new(name), columns, &task(into)).unwrap();
        let row = |fields: &[(&str, &str)]| Row {
            index: 0,
            fields: fields.iter().map(|(name, value)| ((*name).to_owned(), raw(value))).collect(),
        };
        let good = Ok(vec![raw("\"x, \\\"y\\\"\\nz\""), raw("1.50")]);
        let lines = [
            layout.header(),
            layout.row(&row(&[("b", "[1,\n2]"), ("a", "1.0")]), &good),
            layout.row(&row(&[("a", "null")]), &Err("too \"bad\"".to_owned())),
            layout.row(&row(&[]), &good),
        ];
        String::from_utf8(lines.map(Result::unwrap).concat()).unwrap()
    }

    #[test]
    fn rows_have_their_fields_their_answers_and_their_reasons() {
        insta::assert_snapshot!(written("o.jsonl", None), @r#"
        {"b":[1, 2],"a":1.0,"label":"x, \"y\"\nz","n":1.50,"error":null}
        {"a":null,"label":null,"n":null,"error":"too \"bad\""}
        {"label":"x, \"y\"\nz","n":1.50,"error":null}
        "#);
        insta::assert_snapshot!(written("o.jsonl", Some("answer")), @r#"
        {"b":[1, 2],"a":1.0,"answer":{"label":"x, \"y\"\nz","n":1.50,"error":null}}
        {"a":null,"answer":{"label":null,"n":null,"error":"too \"bad\""}}
        {"answer":{"label":"x, \"y\"\nz","n":1.50,"error":null}}
        "#);
        insta::assert_snapshot!(written("o.csv", Some("answer")), @r#"
        a,b,answer.label,answer.n,answer.error
        1.0,"[1,
        2]","x, ""y""
        z",1.50,
        ,,,,"too ""bad"""
        ,,"x, ""y""
        z",1.50,
        "#);
    }

    #[test]
    fn answers_hide_nothing() {
        let new = |file: &str, column: &str, into| {
            let layout = Layout::new(Path::new(file), vec![column.to_owned()], &task(into));
            layout.map(|_| ()).map_err(|error| error.to_string())
        };
        let taken = new("o.csv", "label", None).unwrap_err();
        assert_eq!(taken, "the rows already have a field `label`");
        assert!(new("o.csv", "error", None).is_err());
        for (column, csv, json) in [
            ("label", true, true),
            ("answer", true, false),
            ("answer.label", false, true),
            ("answer.error", false, true),
        ] {
            assert_eq!(new("o.csv", column, Some("answer")).is_ok(), csv, "{column}");
            assert_eq!(new("o.jsonl", column, Some("answer")).is_ok(), json, "{column}");
        }
        let array = Layout::new(Path::new("o.json"), Vec::new(), &task(None)).unwrap_err();
        assert_eq!(array.to_string(), "o.json is neither .jsonl, .ndjson nor .csv");
    }
}
