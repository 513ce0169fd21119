//! tmp
/// f
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
pub enum Format {
    /// t
    #[default]
    Table,
    /// j
    Json,
}
/// p
pub fn print(run: &fingerpost_record::Run, f: Format, _w: bool) -> anyhow::Result<()> {
    match f {
        Format::Json => println!("{}", serde_json::to_string(run)?),
        Format::Table => {
            for m in &run.measurements {
                let e = m.estimate;
                println!(
                    "{:28} {:34} {:>12} ±{:.2}% n={} {}",
                    m.probe,
                    m.params.to_string(),
                    e.map_or("-".into(), |e| m.unit.format(e.value)),
                    e.map_or(0.0, |e| e.relative_half_width() * 100.0),
                    m.processes.len(),
                    m.reason.clone().unwrap_or_default()
                );
            }
        }
    }
    Ok(())
}
