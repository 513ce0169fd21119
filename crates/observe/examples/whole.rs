//! Every request of a service counted in the kernel, and nothing else: `whole PID` counts until standard input ends,
//! and prints what was counted as JSON. For what counting costs the service.

use std::io::Read;

use fingerpost_observe::follow::Answering;
use fingerpost_observe::follow::whole::Whole;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pid = std::env::args().nth(1).and_then(|pid| pid.parse().ok());
    let pid: i32 = pid.ok_or("usage: whole PID")?;
    let whole = Whole::open(&Answering::of([pid]))?;
    println!("counts");
    std::io::stdin().read_to_end(&mut Vec::new())?;
    let look = whole.look()?;
    let latency = look.latency;
    println!(
        "{{\"count\": {}, \"mean\": {}, \"p50\": {}, \"p99\": {}, \"longest\": {}}}",
        latency.count, latency.mean, latency.p50, latency.p99, look.longest
    );
    Ok(())
}
