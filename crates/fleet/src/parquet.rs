//! A sweep's figures as an Apache Parquet file.

use std::io::Write;
use std::sync::Arc;

use fingerpost_record::Run;
use parquet::basic::{Compression, GzipLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::figures::{self, COLUMNS, TEXTS};

/// Lines of a row group: those who read columns read a group at a time, and so much is in memory here.
const LINES: usize = 100_000;

/// The lines of one row group, column by column.
#[derive(Default)]
struct Columns {
    texts: [Vec<ByteArray>; TEXTS],
    versions: Vec<i32>,
    figures: [Vec<f64>; 3],
    /// Which lines have a figure.
    there: [Vec<i16>; 3],
}

impl Columns {
    fn add(&mut self, node: &str, run: &Run) {
        for m in &run.measurements {
            for (column, text) in self.texts.iter_mut().zip(figures::texts(node, run, m)) {
                column.push(ByteArray::from(text.into_bytes()));
            }
            self.versions
                .push(i32::try_from(m.version).unwrap_or(i32::MAX));
            for (n, figure) in figures::of(m).into_iter().enumerate() {
                self.there[n].push(i16::from(figure.is_some()));
                self.figures[n].extend(figure);
            }
        }
    }

    fn write<W: Write + Send>(&self, writer: &mut SerializedFileWriter<W>) -> Result<()> {
        let mut group = writer.next_row_group()?;
        let mut at = 0;
        while let Some(mut column) = group.next_column()? {
            match column.untyped() {
                ColumnWriter::ByteArrayColumnWriter(texts) => {
                    texts.write_batch(&self.texts[at], None, None)?
                }
                ColumnWriter::Int32ColumnWriter(versions) => {
                    versions.write_batch(&self.versions, None, None)?
                }
                ColumnWriter::DoubleColumnWriter(values) => {
                    let n = at - TEXTS - 1;
                    values.write_batch(&self.figures[n], Some(&self.there[n]), None)?
                }
                _ => unreachable!("the schema has texts, whole numbers and figures"),
            };
            column.close()?;
            at += 1;
        }
        group.close().map(drop)
    }
}

fn schema() -> String {
    let column = |(n, name): (usize, &&str)| match n {
        n if n < TEXTS => format!("required binary {name} (UTF8);"),
        n if n == TEXTS => format!("required int32 {name};"),
        _ => format!("optional double {name};"),
    };
    format!(
        "message figures {{ {} }}",
        COLUMNS.iter().enumerate().map(column).collect::<String>()
    )
}

/// Writes the figures of these runs, a line each.
///
/// # Errors
/// The writer's.
pub fn write<W: Write + Send>(out: W, runs: impl Iterator<Item = (String, Run)>) -> Result<()> {
    let gzip = Compression::GZIP(GzipLevel::default());
    let properties = WriterProperties::builder()
        .set_compression(gzip)
        .set_created_by("fingerpost".into())
        .build();
    let mut writer = SerializedFileWriter::new(
        out,
        Arc::new(parse_message_type(&schema())?),
        Arc::new(properties),
    )?;
    let mut columns = Columns::default();
    for (node, run) in runs {
        columns.add(&node, &run);
        if columns.versions.len() >= LINES {
            columns.write(&mut writer)?;
            columns = Columns::default();
        }
    }
    if !columns.versions.is_empty() {
        columns.write(&mut writer)?;
    }
    writer.close().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fingerpost_record::fixture;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    #[test]
    fn what_is_written_is_read_by_the_formats_own_reader() {
        let run = fixture::run();
        let mut file = tempfile::tempfile().unwrap();
        write(
            &mut file,
            ["n1", "n2"]
                .into_iter()
                .map(|node| (node.to_owned(), run.clone())),
        )
        .unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let lines: Vec<_> = reader
            .get_row_iter(None)
            .unwrap()
            .map(|line| line.unwrap())
            .collect();
        assert_eq!(lines.len(), 2 * run.measurements.len());
        let names: Vec<String> = lines[0]
            .get_column_iter()
            .map(|(name, _)| name.clone())
            .collect();
        assert_eq!(names, COLUMNS);
        for (line, m) in lines
            .iter()
            .skip(run.measurements.len())
            .zip(&run.measurements)
        {
            assert_eq!(
                (
                    line.get_string(0).unwrap().as_str(),
                    line.get_string(4).unwrap()
                ),
                ("n2", &m.probe)
            );
            assert_eq!(line.get_int(9).unwrap() as u32, m.version);
            assert_eq!(line.get_double(10).ok(), m.estimate.map(|e| e.value));
        }
        assert!(
            run.measurements.iter().any(|m| m.estimate.is_none()),
            "a line without a figure is tried"
        );
    }
}
