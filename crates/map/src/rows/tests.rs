//! Rows of all three kinds, good and bad.

use super::*;

fn read(name: &str, contents: impl AsRef<[u8]>) -> Result<Vec<String>, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, contents).unwrap();
    let shown = |row: Row| {
        let fields = row.fields.iter().map(|(name, value)| format!("{name}={}", value.get()));
        format!("{} {}", row.index, fields.collect::<Vec<_>>().join(" "))
    };
    let rows = Rows::open(&path).and_then(|rows| rows.collect::<Result<Vec<Row>, _>>());
    rows.map(|rows| rows.into_iter().map(shown).collect())
        .map_err(|error| error.to_string().replace(&path.display().to_string(), "F"))
}

#[test]
fn rows_keep_their_order_their_fields_and_every_digit() {
    let csv = read("a.csv", "\u{feff}b,a\n1.0,\"two\nlines, \"\"quoted\"\"\"\n,x\n").unwrap();
    assert_eq!(csv, [r#"0 b="1.0" a="two\nlines, \"quoted\"""#, r#"1 b="" a="x""#]);
    let lines = "{\"b\": 1.0, \"a\": 12345678901234567890123}\n\n{\"a\":[ 1,{\"z\":1,\"a\":2}]}";
    let expected = ["0 b=1.0 a=12345678901234567890123", r#"1 a=[ 1,{"z":1,"a":2}]"#];
    assert_eq!(read("a.jsonl", lines).unwrap(), expected);
    let array = format!("\u{feff} [\n{}\n]\n", lines.replace("\n\n", ","));
    assert_eq!(read("a.json", array).unwrap(), expected);
    let tricky = r#"[{"a":"]},{\"["},{"b":"\\"}]"#;
    assert_eq!(read("a.json", tricky).unwrap(), [r#"0 a="]},{\"[""#, r#"1 b="\\""#]);
}

#[test]
fn nothing_is_no_rows() {
    for (name, contents) in [
        ("a.csv", ""),
        ("a.csv", "a,b\n"),
        ("a.jsonl", "\n \n"),
        ("a.json", ""),
        ("a.json", " [ ] "),
    ] {
        assert_eq!(read(name, contents).unwrap(), Vec::<String>::new(), "{name} {contents:?}");
    }
}

#[test]
fn bad_rows_are_named_with_their_lines() {
    for (name, contents, expected) in [
        ("a.csv", "a,b\n1,2\n3\n", "F:3: 1 cells, but the header has 2"),
        ("a.csv", "a,a\n", "F:1: the column `a` comes twice"),
        ("a.csv", "a,,b\n", "F:1: column 2 has no name"),
        ("a.jsonl", "{}\n{\"a\":}\n", "F:2: not a JSON object: expected value"),
        (
            "a.jsonl",
            "[1]\n",
            "F:1: not a JSON object: invalid type: sequence, expected an object with the fields of a row",
        ),
        ("a.jsonl", "{\"a\":1,\"a\":2}", "F:1: not a JSON object: the field `a` comes twice"),
        ("a.json", "{\"a\":1}\n", "F:1: not a JSON array of rows; is it JSON lines (.jsonl)?"),
        ("a.json", "[{}\n,\n{\"a\"}]", "F:3: a row that is not a JSON object: expected `:`"),
        ("a.json", "[{},]", "F:1: a comma without a row after it"),
        ("a.json", "[{},\n{\"a\":\"", "F:2: the array is not closed"),
        ("a.json", "[{}] x", "F:1: something after the array"),
        ("a.txt", "", "F is neither .csv, .jsonl, .ndjson nor .json"),
    ] {
        assert_eq!(read(name, contents).unwrap_err(), expected, "{contents:?}");
    }
    assert_eq!(read("a.csv", b"a\n\xff\n").unwrap_err(), "F:2: not UTF-8 text");
    let missing = Rows::open(Path::new("gone.csv")).unwrap_err();
    assert_eq!(missing.to_string(), "there is no file gone.csv");
}
