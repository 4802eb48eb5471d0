//! OutputLayout of output rows: the fields of the input, the answer, and the reason if there is none.

use super::escalation::RowAnswer;
use crate::error::Error;
use crate::row::{Row, to_plain};
use crate::rows::RowFormat;
use crate::task::Task;
use serde_json::Value;
use std::path::Path;

/// Field with the reason why a row has no answer.
const ERROR_FIELD: &str = "error";

/// OutputLayout of output rows.
#[derive(Debug, Clone)]
pub(super) struct OutputLayout {
    format: RowFormat,
    /// Fields of the input, in the order of their first appearance.
    columns: Vec<String>,
    /// Fields of the answers.
    answers: Vec<String>,
    /// Key of each row under which its answer is put; beside the row's fields if absent.
    into: Option<String>,
}

impl OutputLayout {
    /// Creates the layout of an output file.
    ///
    /// # Errors
    ///
    /// Fails if the file extension is unknown, or if an answer field has the name of an input field.
    pub(super) fn new(
        path: &Path,
        columns: Vec<String>,
        task: &Task,
    ) -> Result<OutputLayout, Error> {
        let format = RowFormat::from_path(path).filter(|format| *format != RowFormat::JsonArray);
        let format = format.ok_or_else(|| Error::UnknownOutput(path.to_owned()))?;
        let answers = task.output.iter().map(|field| field.name.clone()).collect();
        let layout = OutputLayout { format, columns, answers, into: task.into.clone() };
        let added = layout.added_columns();
        match layout.columns.iter().find(|column| added.contains(column)) {
            Some(column) => Err(Error::Collision(column.clone())),
            None => Ok(layout),
        }
    }

    /// Returns the columns added to the fields of the input.
    fn added_columns(&self) -> Vec<String> {
        let fields = self.answers.iter().map(String::as_str).chain([ERROR_FIELD]);
        match &self.into {
            None => fields.map(str::to_owned).collect(),
            Some(into) if self.format == RowFormat::Csv => {
                fields.map(|field| format!("{into}.{field}")).collect()
            }
            Some(into) => vec![into.clone()],
        }
    }

    /// Returns the header, with its line end; empty if the format has none.
    pub(super) fn header(&self) -> std::io::Result<Vec<u8>> {
        match self.format {
            RowFormat::Csv => csv_record(self.columns.iter().cloned().chain(self.added_columns())),
            _ => Ok(Vec::new()),
        }
    }

    /// Returns a row, with its line end.
    pub(super) fn row(
        &self,
        row: &Row,
        answer: &Result<RowAnswer, String>,
    ) -> std::io::Result<Vec<u8>> {
        match self.format {
            RowFormat::Csv => {
                let cell = |json: &str| if json == "null" { String::new() } else { to_plain(json) };
                // Most rows have their fields in column order, so the next field is usually the right one.
                let mut rest = row.fields.iter().peekable();
                let mut value = |column: &String| match rest.next_if(|(name, _)| name == column) {
                    Some((_, value)) => cell(value.get()),
                    None => row.get(column).map_or(String::new(), cell),
                };
                let input = self.columns.iter().map(&mut value);
                let values = (0..self.answers.len()).map(|index| match answer {
                    Ok(values) => {
                        values.get(index).map_or(String::new(), |value| cell(value.get()))
                    }
                    Err(_) => String::new(),
                });
                let error = answer.as_ref().err().cloned().unwrap_or_default();
                csv_record(input.chain(values).chain([error]))
            }
            _ => Ok(self.json_line(row, answer).into_bytes()),
        }
    }

    fn json_line(&self, row: &Row, answer: &Result<RowAnswer, String>) -> String {
        let mut line = String::from("{");
        let add = |line: &mut String, name: &str, value: &str| {
            if !line.ends_with('{') {
                line.push(',');
            }
            line.push_str(&Value::from(name).to_string());
            line.push(':');
            // Values may span several lines in the input; within JSON, line ends are white space.
            match value.contains(['\n', '\r']) {
                true => line.push_str(&value.replace(['\n', '\r'], " ")),
                false => line.push_str(value),
            }
        };
        row.fields.iter().for_each(|(name, value)| add(&mut line, name, value.get()));
        let mut added = String::from("{");
        for (index, name) in self.answers.iter().enumerate() {
            let value = answer.as_ref().ok().and_then(|values| values.get(index));
            add(&mut added, name, value.map_or("null", |value| value.get()));
        }
        let error =
            answer.as_ref().err().map_or(Value::Null, |reason| Value::from(reason.as_str()));
        add(&mut added, ERROR_FIELD, &error.to_string());
        match &self.into {
            Some(into) => add(&mut line, into, &format!("{added}}}")),
            None => {
                if line.len() > 1 {
                    line.push(',');
                }
                line.push_str(&added[1..]);
            }
        }
        line.push_str("}\n");
        line
    }
}

fn csv_record(cells: impl Iterator<Item = String>) -> std::io::Result<Vec<u8>> {
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

    fn write_rows(name: &str, into: Option<&str>) -> String {
        let columns = vec!["a".to_owned(), "b".to_owned()];
        let layout = OutputLayout::new(Path::new(name), columns, &task(into)).unwrap();
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
    fn rows_have_input_fields_answer_and_reason() {
        insta::assert_snapshot!(write_rows("o.jsonl", None), @r#"
        {"b":[1, 2],"a":1.0,"label":"x, \"y\"\nz","n":1.50,"error":null}
        {"a":null,"label":null,"n":null,"error":"too \"bad\""}
        {"label":"x, \"y\"\nz","n":1.50,"error":null}
        "#);
        insta::assert_snapshot!(write_rows("o.jsonl", Some("answer")), @r#"
        {"b":[1, 2],"a":1.0,"answer":{"label":"x, \"y\"\nz","n":1.50,"error":null}}
        {"a":null,"answer":{"label":null,"n":null,"error":"too \"bad\""}}
        {"answer":{"label":"x, \"y\"\nz","n":1.50,"error":null}}
        "#);
        insta::assert_snapshot!(write_rows("o.csv", Some("answer")), @r#"
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
    fn answer_field_with_the_name_of_an_input_field_is_rejected() {
        let new = |file: &str, column: &str, into| {
            let layout = OutputLayout::new(Path::new(file), vec![column.to_owned()], &task(into));
            layout.map(|_| ()).map_err(|error| error.to_string())
        };
        let error = new("o.csv", "label", None).unwrap_err();
        assert_eq!(error, "the rows already have a field `label`");
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
        let array = OutputLayout::new(Path::new("o.json"), Vec::new(), &task(None)).unwrap_err();
        assert_eq!(array.to_string(), "unsupported output format: o.json");
    }
}
