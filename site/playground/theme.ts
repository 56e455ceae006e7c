// Loaded before anything is shown, so that the page does not first appear in the other theme.

function follow(): void {
  let chosen: string | null = null;
  try {
    // Where the pages of the site keep what a reader chose: "dark", "light", or "auto" for what the system has.
    chosen = localStorage.getItem('vitepress-theme-appearance');
  } catch {
    // The browser keeps nothing: the system's theme is as good.
  }
  document.documentElement.dataset['theme'] = chosen === 'dark' || chosen === 'light' ? chosen : 'auto';
}

follow();
// A choice in another tab, and one that was made before the browser went back to this page.
addEventListener('storage', follow);
addEventListener('pageshow', follow);
