// Choosing data: by dropping, or by a button.
import { useState } from "preact/hooks";
import { size } from "./words";

const MAP = /\.(geojson|json|gpkg|geoparquet)$/i;

export interface Chosen { data?: File; zones?: File }

/** Tell the data from a map of zones by the ending. */
function sorted(files: FileList): Chosen {
  const chosen: Chosen = {};
  for (const file of Array.from(files)) {
    if (MAP.test(file.name)) chosen.zones = file;
    else chosen.data = file;
  }
  return chosen;
}

export function DataChoice({ data, endings, choose }: { data: File | null; endings: string[]; choose: (chosen: Chosen | null) => void }) {
  const [over, setOver] = useState(false);
  const taken = (files: FileList | null | undefined) => { if (files?.length) choose(sorted(files)); };
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
  </>;
}
