//! Valid and invalid rows in all formats.

use super::*;

fn read(name: &str, contents: impl AsRef<[u8]>) -> Result<Vec<String>, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, contents).unwrap();
    let summary = |row: Row| {
        let fields = row.fields.iter().map(|(name, value)| format!("{name}={}", value.get()));
        format!("{} {}", row.index, fields.collect::<Vec<_>>().join(" "))
    };
    let rows = Rows::open(&path).and_then(|rows| rows.collect::<Result<Vec<Row>, _>>());
    rows.map(|rows| rows.into_iter().map(summary).collect())
        .map_err(|error| error.to_string().replace(&path.display().to_string(), "F"))
}

#[test]
fn rows_keep_order_fields_and_digits() {
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
fn empty_file_has_no_rows() {
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
fn invalid_row_is_reported_with_its_line() {
    for (name, contents, expected) in [
        ("a.csv", "a,b\n1,2\n3\n", "F:3: 1 value, but the header has 2"),
        ("a.csv", "a,a\n", "F:1: duplicate column `a`"),
        ("a.csv", "a,,b\n", "F:1: column 2 has no name"),
        ("a.jsonl", "{}\n{\"a\":}\n", "F:2: not a JSON object: expected value"),
        ("a.jsonl", "[1]\n", "F:1: not a JSON object: invalid type: sequence, expected an object"),
        ("a.jsonl", "{\"a\":1,\"a\":2}", "F:1: not a JSON object: duplicate field `a`"),
        (
            "a.json",
            "{\"a\":1}\n",
            "F:1: not a JSON array of rows; JSON lines need the extension .jsonl",
        ),
        ("a.json", "[{}\n,\n{\"a\"}]", "F:3: row is not a JSON object: expected `:`"),
        ("a.json", "[{},]", "F:1: trailing comma in the array"),
        ("a.json", "[{},\n{\"a\":\"", "F:2: unclosed array"),
        ("a.json", "[{}] x", "F:1: unexpected text after the array"),
        (
            "a.json",
            "\u{feff}\u{feff}[]",
            "F:1: not a JSON array of rows; JSON lines need the extension .jsonl",
        ),
        (
            "a.json",
            " \u{feff}[]",
            "F:1: not a JSON array of rows; JSON lines need the extension .jsonl",
        ),
        ("a.txt", "", "unsupported input format: F"),
    ] {
        assert_eq!(read(name, contents).unwrap_err(), expected, "{contents:?}");
    }
    assert_eq!(read("a.csv", b"a\n\xff\n").unwrap_err(), "F:2: not UTF-8 text");
    let missing = Rows::open(Path::new("gone.csv")).unwrap_err();
    assert_eq!(missing.to_string(), "no such file: gone.csv");
}

#[test]
fn unclosed_quote_is_reported_with_the_line_of_its_start() {
    let unclosed = |line: u64| format!("F:{line}: unclosed quote");
    let long: String = (0..20_000).map(|n| format!("{n},x\n")).collect();
    for (contents, line) in [
        ("a,b\n1,2\n3,\"four\n5,6\n7,8\n".to_owned(), 3),
        ("a,b\n1,\"x\ny\"\n3,\"".to_owned(), 4),
        ("a,b\n\"1,2\n".to_owned(), 2),
        ("a,\"b\n1,2\n".to_owned(), 1),
        ("\u{feff}\"a,b\n1,2\n".to_owned(), 1),
        ("a,b\n1,\"x\"\"\n".to_owned(), 2),
        (format!("a,b\n{long}1,\"2\n{long}"), 20_002),
    ] {
        assert_eq!(read("a.csv", &contents).unwrap_err(), unclosed(line), "{line}");
    }
    // Quotes within unquoted cells, and closed quotes.
    for valid in
        ["a,b\n5\" wide,x\"\n", "a\n\"x\"\"\"\n", "a\n\"x\" y\"\n", "a,b\r\n\"1\",\"\"\r\n"]
    {
        assert_eq!(read("a.csv", valid).unwrap().len(), 1, "{valid}");
    }
    // An earlier problem is reported first.
    let earlier = read("a.csv", "a,b\n1\n2,\"3\n").unwrap_err();
    assert_eq!(earlier, "F:2: 1 value, but the header has 2");
}

#[test]
fn header_without_rows_names_columns() {
    let folder = tempfile::tempdir().unwrap();
    let columns = |name: &str, contents: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, contents).unwrap();
        Rows::open(&path).unwrap().columns().map(<[String]>::to_vec)
    };
    let names = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
    assert_eq!(columns("a.csv", "\u{feff}a,b\n"), names(&["a", "b"]));
    assert_eq!(columns("a.csv", "\u{feff}\"a\",b\n1,2\n"), names(&["a", "b"]));
    assert_eq!(columns("a.csv", ""), names(&[]));
    assert_eq!(columns("a.jsonl", "{\"a\":1}"), None);
}

#[cfg(unix)]
#[test]
fn pipe_or_folder_is_rejected_without_opening_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.csv");
    let status = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(status.success());
    for path in [path.as_path(), folder.path()] {
        let error = Rows::open(path).unwrap_err();
        assert_eq!(error.to_string(), format!("{} is not a regular file", path.display()));
        assert_eq!(error.hint(), Some("rows are read more than once; write them to a file"));
    }
}
