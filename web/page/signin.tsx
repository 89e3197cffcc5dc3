// Coming in with a token.
import { useState } from "preact/hooks";
import { remember, said } from "./api";
import { Alert, Title } from "./parts";

export function SignIn({ enter }: { enter: () => Promise<void> }) {
  const [given, setGiven] = useState(""), [wait, setWait] = useState(false), [error, setError] = useState("");
  const submit = async (event: Event) => {
    event.preventDefault();
    if (!given.trim()) return setError("Wanted a token; paste the one that you were given.");
    setWait(true);
    setError("");
    remember(given.trim());
    try { await enter(); } catch (problem) {
      remember(null);
      setError(said(problem));
      setWait(false);
    }
  };
  return <div class="signin">
    <Title>Sign in</Title>
    <p>The operator of this server gives tokens. Yours is kept in this tab alone, and forgotten when you close it.</p>
    <form onSubmit={submit}>
      <div class="field"><label for="token">Token</label>
        <input id="token" type="password" autocomplete="off" spellcheck={false} value={given} aria-describedby="token-hint" onInput={(event) => setGiven(event.currentTarget.value)} />
        <p class="hint" id="token-hint">It begins with cv_</p></div>
      {error && <Alert>{error}</Alert>}
      <p class="go"><button type="submit" class="main" disabled={wait}>{wait ? "Asking…" : "Sign in"}</button></p>
    </form>
  </div>;
}
