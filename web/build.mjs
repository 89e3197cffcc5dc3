// Build the scripts and the styles of the report and of the service's page into the Python package. `--out FOLDER`
// builds elsewhere, to compare. Each begins with a hash of its sources, so that a test without node can tell that it is
// stale.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const at = process.argv.indexOf("--out");
const out = at > 0 ? process.argv[at + 1] : join(here, "..", "src", "crowdveil");
const BUNDLES = [
  { from: ["src"], script: "src/report.ts", style: "src/report.css", to: "report/page/report", format: "iife" },
  { from: ["page", "src"], script: "page/main.tsx", style: "page/page.css", to: "server/page/app", format: "esm" },
];
const common = { bundle: true, minify: true, write: false, charset: "utf8", legalComments: "none" };
const jsx = { jsx: "automatic", jsxImportSource: "preact" };

for (const { from, script, style, to, format } of BUNDLES) {
  const inFolder = (folder) => readdirSync(join(here, folder)).sort().map((file) => `${folder}/${file}`);
  const sources = ["build.mjs", "package-lock.json", ...from.flatMap(inFolder)];
  const hash = createHash("sha256");
  for (const source of sources) hash.update(source + "\n").update(readFileSync(join(here, source)));
  const banner = `/* built by make web from ${hash.digest("hex")} */`;
  const code = await build({ ...common, ...jsx, entryPoints: [join(here, script)], format, target: "es2020" });
  const browsers = ["chrome100", "firefox100", "safari15"];
  const look = await build({ ...common, entryPoints: [join(here, style)], target: browsers });
  mkdirSync(dirname(join(out, to)), { recursive: true });
  writeFileSync(join(out, `${to}.js`), `${banner}\n${code.outputFiles[0].text}`);
  writeFileSync(join(out, `${to}.css`), `${banner}\n${look.outputFiles[0].text}`);
}
