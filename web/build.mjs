// Build the script and the style of the report into the Python package. `--out FOLDER` builds elsewhere, to compare.
// Both begin with a hash of their sources, so that a test without node can tell that they are stale.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const at = process.argv.indexOf("--out");
const out = at > 0 ? process.argv[at + 1] : join(here, "..", "src", "crowdveil", "report", "page");

const sources = ["build.mjs", "package-lock.json", ...readdirSync(join(here, "src")).sort().map((name) => `src/${name}`)];
const hash = createHash("sha256");
for (const name of sources) hash.update(name + "\n").update(readFileSync(join(here, name)));
const banner = `/* built by make web from ${hash.digest("hex")} */`;

mkdirSync(out, { recursive: true });
const common = { bundle: true, minify: true, write: false, charset: "utf8", legalComments: "none" };
const script = await build({ ...common, entryPoints: [join(here, "src", "report.ts")], format: "iife", target: "es2020" });
const style = await build({ ...common, entryPoints: [join(here, "src", "report.css")], target: ["chrome100", "firefox100", "safari15"] });
writeFileSync(join(out, "report.js"), `${banner}\n${script.outputFiles[0].text}`);
writeFileSync(join(out, "report.css"), `${banner}\n${style.outputFiles[0].text}`);
