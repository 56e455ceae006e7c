// Leaves out the theme's fonts, because systems have some and the site stays small.
import theme from 'vitepress/theme-without-fonts';
import './style.css';

export default theme;
