//! The columns of comma-separated values, and a line of them as RFC 4180 has it.

/// The columns, in their order.
pub const HEADER: &str = "run,host,group,probe,version,params,unit,better,outcome,value,low,high,\
    confidence,p50,p90,p99,processes,samples,disturbed,instructions_user,instructions_kernel,cycles_user,cycles_kernel,reason";

/// A text of the run. A spreadsheet takes a cell that begins like a formula for one, and runs it; an apostrophe makes it text.
pub fn word(text: &str) -> String {
    if text.starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text.to_owned() }
}

/// A line of fields, quoted where they must be, ended as RFC 4180 has it.
pub fn line(fields: impl IntoIterator<Item = String>) -> String {
    fields.into_iter().map(|f| quoted(&f)).collect::<Vec<_>>().join(",") + "\r\n"
}

fn quoted(field: &str) -> String {
    if field.contains(['"', ',', '\r', '\n']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        assert_eq!(line(["a", "b,c", "say \"hi\"", ""].map(String::from)), "a,\"b,c\",\"say \"\"hi\"\"\",\r\n");
    }

    #[test]
    fn nothing_of_a_run_becomes_a_formula() {
        assert_eq!(word("=HYPERLINK(\"x\")"), "'=HYPERLINK(\"x\")");
        assert_eq!(word("syscall.null"), "syscall.null");
    }
}
