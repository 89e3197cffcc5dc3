// Choosing data: by dropping, by a button, or from a made-up city.
import { useState } from "preact/hooks";
import { blob, said } from "./api";
import { Alert } from "./parts";
import { size } from "./words";

const MAP = /\.(geojson|json|gpkg|geoparquet)$/i;

export interface Chosen { data?: File; zones?: File; made?: boolean }

/** Tell the data from a map of zones by the ending. */
function sorted(files: FileList): Chosen {
  const chosen: Chosen = {};
  for (const file of Array.from(files)) {
    if (MAP.test(file.name)) chosen.zones = file;
    else chosen.data = file;
  }
  return chosen;
}

async function example(name: string): Promise<File> {
  return new File([await blob(`/example/${name}`)], name);
}

export function DataChoice({ data, endings, choose }: { data: File | null; endings: string[]; choose: (chosen: Chosen | null) => void }) {
  const [over, setOver] = useState(false), [wait, setWait] = useState(""), [error, setError] = useState("");
  const taken = (files: FileList | null | undefined) => { if (files?.length) { setError(""); choose(sorted(files)); } };
  const trial = async (kind: string) => {
    setWait(kind);
    setError("");
    try {
      if (kind === "trips") choose({ data: await example("trips.csv"), zones: await example("zones.geojson"), made: true });
      else choose({ data: await example("drives.csv"), made: true });
    } catch (problem) { setError(said(problem)); } finally { setWait(""); }
  };
  if (data)
    return <p class="chosen large"><span>{data.name} <small>{size(data.size)}</small></span>
      <button type="button" class="quiet" onClick={() => choose(null)}>Choose another<span class="hide"> file</span></button></p>;
  return <>
    <div class={over ? "drop over" : "drop"} onDragOver={(event) => { event.preventDefault(); setOver(true); }} onDragLeave={() => setOver(false)}
      onDrop={(event) => { event.preventDefault(); setOver(false); taken(event.dataTransfer?.files); }}>
      <label for="data">Drop a file here, with its zones if there are any, or choose it</label>
      <input type="file" id="data" multiple accept={[...endings, ".geojson", ".gpkg", ".geoparquet"].join(",")} aria-describedby="data-hint" onChange={(event) => taken(event.currentTarget.files)} />
      <p class="hint" id="data-hint">Trips, flows or trajectories as CSV or Parquet, or matrices as OMX.</p>
    </div>
    <div class="trial"><span>No file yet? Try it with a synthetic city:</span>
      <button type="button" onClick={() => trial("trips")} disabled={wait !== ""}>{wait === "trips" ? "Making it…" : "Trips"}</button>
      <button type="button" onClick={() => trial("drives")} disabled={wait !== ""}>{wait === "drives" ? "Making it…" : "Trajectories"}</button>
    </div>
    {error && <Alert>{error}</Alert>}
  </>;
}
